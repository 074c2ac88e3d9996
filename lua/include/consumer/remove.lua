--- @include "finish/release"
--- @include "consumer/notify"
--- @include "consumer/notify_next"

--- A consumer leaves: what it held goes back (a slice at a time), it is taken off all lists, and another one is
--- notified of the work that it was notified of (Q-39, Q-58).

local REMOVE_SLICE = 200

--- Release one slice of `most` jobs (nil: REMOVE_SLICE), last positions first, so that heads stay right between slices
--- (H-06). `charged`: id -> charge, or a function that says so of (jobs of the slice, number of jobs left). Returns how
--- many it still holds, and how many it does not any more.
local function consumer_remove_slice(base, queue, consumer, charged, most)
  --- @each audience(base, false)
  local held = base .. 'held:' .. consumer
  local ids = redis.call('LRANGE', held, -(most or REMOVE_SLICE), -1)
  if #ids == 0 then return 0, 0 end
  local left = redis.call('LLEN', held) - #ids
  local jobs = unfinished_read(base, ids)
  if type(charged) == 'function' then charged = charged(jobs, left) end
  -- first write: frees (README)
  redis.call('LTRIM', held, 0, -#ids - 1)
  queue.died = queue.died or {}
  local back = release_jobs(base, consumer, jobs, charged, queue)
  if back > 0 and not queue.paused then
    consumer_notify(base, queue.now, back, queue.timer, queue.ranked)
    queue.timer = redis.call('HGET', base .. 'meta', 'timer')
  end
  --- @each vacated(base, { now = queue.now })
  return left, #ids
end

--- It holds nothing any more: take it off.
local function consumer_remove(base, queue, consumer)
  local state = redis.call('HGET', base .. 'consumer:' .. consumer, 'state')
  redis.call('ZREM', base .. 'consumers', consumer)
  redis.call('ZREM', base .. 'interested', consumer)
  --- @each waits(base, consumer)
  --- @each audience(base, consumer)
  redis.call('ZREM', base .. 'notified', consumer)
  redis.call('SREM', base .. 'not_interested', consumer)
  redis.call('SREM', base .. 'browsers', consumer)
  redis.call('DEL', base .. 'consumer:' .. consumer, base .. 'wake:' .. consumer, base .. 'running:' .. consumer)
  if redis.call('EXISTS', base .. 'browsers') == 0 then redis.call('HDEL', base .. 'meta', 'browsing') end
  --- @each gone(base, queue, consumer)
  --- @if closed
  -- who waits for a wake-up looks, and finds out that it is gone
  redis.call('RPUSH', base .. 'wake:' .. consumer, 'w')
  redis.call('PEXPIRE', base .. 'wake:' .. consumer, '5000')
  --- @end
  if state ~= 'not_interested' then notify_next(base, queue) end
end
