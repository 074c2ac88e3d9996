--- @include "outgoing/add"
--- @include "job/value"

--- A job of this queue leaves it for another one.

--- The terms under which it is enqueued there: its level, and how often it may be tried. A job of a group or with a time
--- to live has neither there; what it had stands in its origin.
local function outgoing_move_terms(base, job)
  local levels = tonumber(redis.call('HGET', base .. 'meta', 'priorities')) or 10
  local terms = string.format('%d,,%d', math.min(9, job.level + math.max(0, 5 - math.ceil(levels / 2))), job.max)
  if job.max_crashes > 0 then terms = terms .. string.format(':%d', job.max_crashes) end
  return terms .. ','
end

--- `job`: a parsed value with its id, whose value the caller takes away. `outcome`: why it leaves; `cause`: JSON.
local function outgoing_move(base, now, job, target, outcome, cause)
  local readable, said = pcall(cjson.decode, cause or '')
  redis.call('HDEL', base .. 'errors', job.id)
  outgoing_add(base, { {
    target = target,
    id = job.id,
    terms = outgoing_move_terms(base, job),
    at = now,
    envelope = job.envelope,
    origin = {
      outcome = outcome,
      at = now,
      enqueued = job.enqueued,
      attempts = job.attempts,
      deliveries = job.deliveries,
      group = value_name(job, 'g'),
      cause = readable and type(said) == 'table' and said or nil,
    },
  } })
end
