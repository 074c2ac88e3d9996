--- @include "give_back"
--- @include "consumers"
--- @include "pass_on"

--- A consumer leaves: what it held goes back (a slice at a time), it is taken off all lists, and the work it was told
--- of is passed on (Q-39, Q-58).

local LEAVE_SLICE = 250

--- Give back one slice, last positions first, so that heads stay right between slices (H-06). `charged`: id -> cause.
--- Returns how many are left in its hands.
local function leave_slice(base, queue, consumer, charged)
  local ids = redis.call('LRANGE', base .. 'held:' .. consumer, -LEAVE_SLICE, -1)
  local back = give_back_jobs(base, consumer, ids, charged, queue)
  if back > 0 and not queue.paused then
    consumer_notify(base, queue.now, back, queue.timer, queue.ranked)
    queue.timer = redis.call('HGET', base .. 'meta', 'timer')
  end
  return redis.call('LLEN', base .. 'held:' .. consumer)
end

--- Nothing is left in its hands: take it off.
local function leave_lists(base, queue, consumer)
  local state = redis.call('HGET', base .. 'consumer:' .. consumer, 'state')
  redis.call('ZREM', base .. 'consumers', consumer)
  redis.call('ZREM', base .. 'interested', consumer)
  redis.call('ZREM', base .. 'notified', consumer)
  redis.call('SREM', base .. 'not_interested', consumer)
  redis.call('SREM', base .. 'browsers', consumer)
  redis.call('DEL', base .. 'consumer:' .. consumer, base .. 'wake:' .. consumer)
  if redis.call('EXISTS', base .. 'browsers') == 0 then redis.call('HDEL', base .. 'meta', 'browsing') end
  if state ~= 'not_interested' then pull_pass_on(base, queue) end
end
