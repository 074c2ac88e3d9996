--- @include "job/value"
--- @include "schedule/member"
--- @include "order/replace"
--- @include "result/read"
--- @include "held/scan"
--- @hooks unblock
--- @one rank

--- Jobs that wait, or are dead, leave their places because people say so; what becomes of them the step says.

--- A job (its value parsed, with `id`, `value` and `was`: waiting, scheduled, dead), or nil and why it stays: held,
--- deferred, ended, unknown, damaged.
local function leave_find(base, id)
  local value = redis.call('HGET', base .. 'jobs', id)
  if not value then return nil, result_read(base, id) and 'ended' or 'unknown' end
  if string.byte(value) == 33 then return nil, 'ended' end
  local job = value_parse(value)
  if job.damaged then return nil, 'damaged' end
  job.id, job.value, job.was = id, value, 'waiting'
  job.member = schedule_member(job, id)
  if redis.call('ZSCORE', base .. 'dead', id) then
    job.was = 'dead'
  elseif redis.call('ZSCORE', base .. 'scheduled', job.member) then
    job.was = 'scheduled'
  elseif held_scan_holder(base, id) then
    return nil, 'held'
  end
  --- @if awaits
  local parents
  --- @each parents = awaits(base, job)
  if parents then return nil, 'deferred' end
  --- @end
  return job
end

--- Out of its place, whatever that is: nothing of the id is left there, so that it may come again. False where it does
--- not stand there. `queue.marks` counts the marks that take the places of others.
local function leave_place(base, queue, job)
  if job.was == 'dead' then
    redis.call('ZREM', base .. 'dead', job.id)
    redis.call('HDEL', base .. 'causes', job.id)
    return true
  end
  if job.was == 'scheduled' then
    redis.call('ZREM', base .. 'scheduled', job.member)
    redis.call('HDEL', base .. 'parked', job.id)
    redis.call('HDEL', base .. 'returns_to', job.id)
    return true
  end
  local placed
  --- @each placed = unblock(base, queue, job)
  if placed then return true end
  local key = rank(base, job)
  if redis.call('LINDEX', key, '0') == job.id then
    -- most are the first ones of their lists: no mark is left there
    redis.call('LPOP', key)
    return true
  end
  if not order_replace(base, job) then return false end
  queue.marks = (queue.marks or 0) + 1
  return true
end
