--- @include "order/waiting"
--- @include "consumer/notify"

--- A queue that was paused delivers again: as many waiting consumers are notified as there is work for (H-16).
local function resume_queue(base, queue)
  redis.call('HDEL', base .. 'meta', 'paused', 'timer')
  local waiting = waiting_count(base, queue.levels)
  local due = redis.call('ZCOUNT', base .. 'scheduled', '-inf', queue.now)
  if waiting + due > 0 then
    consumer_notify(base, queue.now, waiting + due, false, queue.ranked)
  end
  -- the consumer that watched the schedule may have looked meanwhile, and learned nothing: one of them looks again
  consumer_wake_timer(base, queue.now)
end
