--- @include "consumer/wake"

--- A consumer that waits looks again, since a tick may come before what is watched for.
local function tick_watch(base, queue)
  if queue.paused then return end
  if queue.timer and redis.call('ZSCORE', base .. 'interested', queue.timer) then
    redis.call('HDEL', base .. 'meta', 'timer')
    consumer_wake(base, queue.now, queue.timer)
  elseif redis.call('EXISTS', base .. 'notified') == 0 then
    consumer_wake_timer(base, queue.now)
  end
end
