--- @include "consumer/most"

--- Which living consumers declare a schedule: field `schedule:<name>` of a consumer's hash is the hash of what its code
--- says of it, and goes with the consumer.

--- How long pools of its application live without a schedule before it is retired: a rolling deploy is over by then.
local DECLARED_RETIRE_MS = 600000

--- {hash -> true} of those that living consumers declare, and whether none does while one of the same application that
--- does not has lived so long that the schedule is to be retired.
local function declared_by(base, now, name, app)
  local found, over, any = {}, false, false
  for _, consumer in ipairs(redis.call('ZRANGEBYSCORE', base .. 'consumers', string.format('%d', now), '+inf', 'LIMIT', '0',
    CONSUMERS_MOST)) do
    local row = redis.call('HMGET', base .. 'consumer:' .. consumer, 'schedule:' .. name, 'app', 'since')
    if row[1] then
      found[row[1]], any = true, true
    elseif row[2] and row[2] == app and now - (tonumber(row[3]) or now) >= DECLARED_RETIRE_MS then
      over = true
    end
  end
  return found, over and not any
end
