--- @include "consumer/most"

--- Looks at all that a consumer holds, which no everyday step takes.

--- How many jobs of a consumer are weighed one by one.
local SCAN_WEIGHED = 1000

--- Bytes of the values that a consumer holds: counted anew where the running account cannot be trusted. Of very many
--- the others are taken to be like the first ones: the account is exact again when it holds none.
local function held_scan_bytes(base, consumer)
  local key, total = base .. 'held:' .. consumer, 0
  local ids = redis.call('LRANGE', key, 0, SCAN_WEIGHED - 1)
  for _, id in ipairs(ids) do total = total + redis.call('HSTRLEN', base .. 'jobs', id) end
  if #ids < SCAN_WEIGHED then return total end
  return math.floor(total / #ids * redis.call('LLEN', key))
end

--- Which consumer holds a job: a look at each one's list (a queue has 10,000 consumers at the most).
local function held_scan_holder(base, id)
  for _, consumer in ipairs(redis.call('ZRANGE', base .. 'consumers', 0, CONSUMERS_LAST)) do
    if redis.call('LPOS', base .. 'held:' .. consumer, id) then return consumer end
  end
  return false
end
