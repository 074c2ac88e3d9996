--- @include "job/value"
--- @include "order/search"
--- @include "schedule/member"
--- @one rank
--- @hooks eligible
--- @hooks stands
--- @hooks behind
--- @hooks awaits

--- Where a live job is, without a walk over those who may hold it.

--- scheduled, ready, blocked, deferred or held; nil where it waits and will never be delivered.
local function job_state(base, now, id, value)
  local job, state = value_parse(value), nil
  job.id = id
  if redis.call('ZSCORE', base .. 'scheduled', schedule_member(job, id)) then state = 'scheduled' end
  --- @if stands
  if not state then
    local set
    --- @each set = stands(base, job)
    state = set and 'ready'
  end
  --- @end
  --- @if awaits
  if not state then
    local parents
    --- @each parents = awaits(base, job)
    state = parents and 'deferred'
  end
  --- @end
  --- @if behind
  if not state then
    local place
    --- @each place = behind(base, job)
    state = place and 'blocked'
  end
  --- @end
  if not state then
    local key = rank(base, job)
    state = redis.call('LINDEX', key, (order_search(base, key, job))) == id and 'ready'
  end
  if not state then return 'held' end
  --- @if eligible
  local over
  --- @each over = eligible(value, now)
  if over then return nil end
  --- @end
  return state
end
