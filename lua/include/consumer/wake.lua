--- @include "consumer/lists"
--- @hooks timed

--- Wake one interested consumer: it becomes notified and must pull. False if it is not interested any more.
local function consumer_wake(base, now, consumer)
  if redis.call('ZREM', base .. 'interested', consumer) == 0 then return false end
  --- @each waits(base, consumer)
  consumer_lists_move(base, now, consumer, nil, 'notified')
  redis.call('RPUSH', base .. 'wake:' .. consumer, 'w')
  return true
end

--- One of the consumers that wait must hold the fleet's timer while jobs are scheduled. When its holder leaves the
--- waiting ones, the consumer that would be woken last takes over: it pulls, and learns the next due time.
local function consumer_wake_timer(base, now)
  redis.call('HDEL', base .. 'meta', 'timer')
  --- @if timed
  local first = {}
  --- @each timed(base, first)
  if not first[2] then
  --- @end
  if redis.call('EXISTS', base .. 'scheduled') == 0 then return end
  --- @if timed
  end
  --- @end
  local last = redis.call('ZREVRANGE', base .. 'interested', 0, 0)[1]
  if last then consumer_wake(base, now, last) end
end
