--- @include "job/value"
--- @include "finish/errors"

--- Dead letters: the job's value stays in `jobs`, its cause in `causes`, the attempts' errors in `errors`.

--- Why a job without a header is dead.
local function dead_letter_undecodable(now)
  return cjson.encode({ kind = 'undecodable', type = 'Undecodable', at = now,
    message = 'its stored value has no header: something that is not rqueue wrote it' })
end

--- Make a dead letter of `job` (a parsed value with its id), here or in the queue that a policy names, or end it where
--- the queue keeps none: returns its record.
local function dead_letter_store(base, now, job, cause)
  --- @if route
  local target
  --- @each target = route(base, job, 'dead')
  if target then
    --- @include "outgoing/move"
    outgoing_move(base, now, job, target, 'dead', cause)
    redis.call('HDEL', base .. 'jobs', job.id)
    return string.format('F%d:', now) .. cause
  end
  --- @end
  --- @if final
  local final
  --- @each final = final(base, job)
  if final then
    redis.call('HDEL', base .. 'jobs', job.id)
    redis.call('HDEL', base .. 'errors', job.id)
    return string.format('F%d:', now) .. cause
  end
  --- @end
  redis.call('HSET', base .. 'jobs', job.id, value_header(job) .. job.envelope)
  redis.call('ZADD', base .. 'dead', now, job.id)
  redis.call('HSET', base .. 'causes', job.id, cause)
  errors_note(base, job.id, cause)
  return string.format('F%d:', now) .. cause
end
