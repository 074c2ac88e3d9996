--- @include "consumer/wake"

--- Something that only a policy knows is due sooner than all that was: the consumer that watches learns of it; where none
--- does, one that waits begins to, unless one that was notified is still to pull.
local function watch_sooner(base, now)
  local said = redis.call('HMGET', base .. 'meta', 'timer', 'paused')
  if said[2] == '1' then return end
  if said[1] and redis.call('ZSCORE', base .. 'interested', said[1]) then
    redis.call('HDEL', base .. 'meta', 'timer')
    consumer_wake(base, now, said[1])
  elseif redis.call('EXISTS', base .. 'notified') == 0 then
    consumer_wake_timer(base, now)
  end
end
