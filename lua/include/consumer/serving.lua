--- @include "consumer/most"

--- For so many ms after its end a lease is one that may still be renewed, or that a pool is about to reclaim.
local SERVING_GRACE = 5000

--- How many consumers acquire, and how many of these have a lease that has not ended: others are dead, or cut off.
local function consumer_serving(base, now)
  local since = string.format('%d', now - SERVING_GRACE)
  local all = redis.call('ZCARD', base .. 'consumers')
  local alive = redis.call('ZCOUNT', base .. 'consumers', since, '+inf')
  for place, name in ipairs(redis.call('SMEMBERS', base .. 'browsers')) do
    if place > CONSUMERS_MOST then break end
    local until_ = redis.call('ZSCORE', base .. 'consumers', name)
    if until_ then all = all - 1 end
    if until_ and tonumber(until_) >= tonumber(since) then alive = alive - 1 end
  end
  return all, alive
end
