--- @include "order/waiting"
--- @include "consumer/notify"
--- @hooks timed

--- Whether there is work for a consumer: elements in the lists, or due jobs not yet promoted.
local function notify_next_work_waits(base, queue)
  if waiting_count(base, queue.levels) > 0 then return true end
  local first = redis.call('ZRANGE', base .. 'scheduled', 0, 0, 'WITHSCORES')
  --- @each timed(base, first)
  return first[2] ~= nil and tonumber(first[2]) <= queue.now
end

--- Notify another consumer that waits while work is left (the cascade after a batch, and the pass-on of Q-39 and Q-42).
--- Without work one of them must watch the schedule, unless a notified consumer is still to pull and will take that on.
--- `work`: whether some waits, nil: not known.
local function notify_next(base, queue, work)
  --- @if timed
  -- who has come since is to watch for ticks
  queue.quiet = false
  --- @end
  if queue.paused or queue.quiet then return end
  if redis.call('EXISTS', base .. 'interested') == 0 then return end
  if work == nil then work = notify_next_work_waits(base, queue) end
  --- @if tell
  if work then
    local woken
    --- @each woken = tell(base, queue.now, 1, queue.timer, queue.ranked, { left = true })
    -- it may be that nobody who waits takes it: the schedule is watched all the same
    if woken > 0 then return end
  end
  work = false
  --- @end
  --- @if timed
  local first = {}
  --- @each timed(base, first)
  --- @end
  if work then
    consumer_notify(base, queue.now, 1, queue.timer, queue.ranked)
  --- @if timed
  elseif first[2] and redis.call('EXISTS', base .. 'notified') == 0
    and not (queue.timer and redis.call('ZSCORE', base .. 'interested', queue.timer)) then
    consumer_wake_timer(base, queue.now)
  --- @end
  elseif redis.call('EXISTS', base .. 'scheduled') == 1 and redis.call('EXISTS', base .. 'notified') == 0
    and not (queue.timer and redis.call('ZSCORE', base .. 'interested', queue.timer)) then
    consumer_wake_timer(base, queue.now)
  end
end
