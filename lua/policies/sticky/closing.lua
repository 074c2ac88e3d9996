--- @hooks tell

--- A pull is over that may have made jobs ready for other consumers, or left them some.
local function sticky_closing(base, queue, consumer)
  if queue.paused or not (STICKY.left or STICKY.common > 0 or next(STICKY.own)) then return end
  local timer = redis.call('HGET', base .. 'meta', 'timer')
  -- one that is notified takes its part of what is left, and one that is not content has passed it on itself
  local left = STICKY.left and consumer.state == 'interested' and redis.call('EXISTS', base .. 'notified') == 0
  local jobs = left and 1 or 0
  sticky_tell(base, queue.now, jobs, timer, queue.ranked, { except = consumer.name })
end
