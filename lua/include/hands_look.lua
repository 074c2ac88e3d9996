--- Looks into hands that no everyday step takes.

--- How many jobs of a consumer are weighed one by one.
local HANDS_WEIGHED = 1000

--- Bytes of the values in these hands: counted anew where the running account cannot be trusted. Of very many the others
--- are taken to be like the first ones: the account is exact again when the hands are empty.
local function hands_bytes(base, consumer)
  local key, total = base .. 'held:' .. consumer, 0
  local ids = redis.call('LRANGE', key, 0, HANDS_WEIGHED - 1)
  for _, id in ipairs(ids) do total = total + redis.call('HSTRLEN', base .. 'jobs', id) end
  if #ids < HANDS_WEIGHED then return total end
  return math.floor(total / #ids * redis.call('LLEN', key))
end

--- Which consumer holds a job: a look into each one's hands (a queue has at most some thousands of consumers).
local function hands_holder(base, id)
  for _, consumer in ipairs(redis.call('ZRANGE', base .. 'consumers', 0, 4095)) do
    if redis.call('LPOS', base .. 'held:' .. consumer, id) then return consumer end
  end
  return false
end
