--- Looks into hands that no everyday step takes.

--- Bytes of the values in these hands: counted anew where the running account cannot be trusted.
local function hands_bytes(base, consumer)
  local ids, total = redis.call('LRANGE', base .. 'held:' .. consumer, 0, -1), 0
  for i = 1, #ids, 1000 do
    local values = redis.call('HMGET', base .. 'jobs', unpack(ids, i, math.min(i + 999, #ids)))
    for _, value in ipairs(values) do
      if value then total = total + #value end
    end
  end
  return total
end

--- Which consumer holds a job: a look into each one's hands (a queue has at most some thousands of consumers).
local function hands_holder(base, id)
  for _, consumer in ipairs(redis.call('ZRANGE', base .. 'consumers', 0, 4095)) do
    if redis.call('LPOS', base .. 'held:' .. consumer, id) then return consumer end
  end
  return false
end
