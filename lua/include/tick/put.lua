--- @include "enqueue/batch_terms"
--- @include "schedule/add"
--- @include "result/read"

--- A tick becomes a job, that waits in `scheduled` until it is due.

--- Whether the job of this id waits, runs or is to be tried again.
local function put_lives(base, id)
  local value = id and redis.call('HGET', base .. 'jobs', id)
  return value and string.byte(value) ~= 33 and not redis.call('ZSCORE', base .. 'dead', id)
end

--- A number from 0 to `most` for this id: the same again in this queue, another one in each installation.
local function put_spread(base, id, most)
  local own = redis.call('HGET', base .. 'meta', 'spread')
  if not own then
    own = string.sub(redis.sha1hex(base .. table.concat(redis.call('TIME'), '.')), 1, 8)
    redis.call('HSET', base .. 'meta', 'spread', own)
  end
  return tonumber(string.sub(redis.sha1hex(own .. id), 1, 8), 16) % (most + 1)
end

--- Its id says of which schedule it is, and when: a second one is refused. `at_once`: people want it, no tick is due and
--- there is no jitter. `signed`: what stands before the envelope, nil: as it is noted of this tick. Returns the id and
--- when it is due; nil where there is such a job, or it cannot be enqueued, or another one has its unique key: then
--- also {error=, id=, state=}, of which `error` is the reply where it is to be refused, else the other's id and state.
local function put_tick(base, queue, name, record, tick, at_once, signed)
  local id = name .. '@' .. string.format('%d', tick)
  if redis.call('HEXISTS', base .. 'jobs', id) == 1 or result_read(base, id) then return nil end
  local priorities = tonumber(redis.call('HGET', base .. 'meta', 'priorities')) or 10
  local plan, fault = batch_terms_read(record.terms .. '1', 1, { base = base, now = queue.now, priorities = priorities })
  if not plan then
    record.fault = fault.err
    return nil
  end
  --- @if instead
  local uniques, conflict = { now = queue.now, index = {}, answered = {} }, nil
  --- @each conflict = instead(base, plan, { id }, uniques)
  if conflict or uniques.answered[1] then
    if not at_once then record.conflicts = record.conflicts + 1 end
    return nil, { error = conflict, id = uniques.answered[2], state = uniques.answered[3] }
  end
  --- @end
  local run = plan[1]
  run.tags = run.tags .. string.format('|t%d', record.behind)
  --- @if grown
  local depth
  --- @each depth = depth(base, 1)
  --- @end
  local position = redis.call('HINCRBY', base .. 'meta', 'seq', '1') - 1
  run.due = at_once and queue.now or tick
  if record.jitter > 0 and not at_once then run.due = tick + put_spread(base, id, record.jitter) end
  local stored = {}
  signed = signed or record.signed and record.signed[string.format('%d', tick)]
  if type(signed) ~= 'string' then signed = '' end
  -- it counts as enqueued at its tick, also where that is noticed late
  local _, scheduled = batch_terms_lay_out(plan, { id }, position, tick, stored, { '', signed .. record.job }, 1)
  redis.call('HSET', base .. 'jobs', unpack(stored))
  --- @each weigh(base, queue.now, stored, 'scheduled')
  --- @if owned
  --- @each owned(base, queue.now, uniques.index, false)
  --- @end
  schedule_add(base, scheduled)
  --- @if grown
  --- @each grown(base, queue.now, depth)
  --- @end
  record.behind, record.fault = 0, nil
  record.last, record.last_id, record.fired = tick, id, record.fired + 1
  return id, run.due
end
