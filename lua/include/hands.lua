--- Which consumer holds a job: a look into each one's hands (a queue has at most some thousands of consumers).
local function hands_holder(base, id)
  for _, consumer in ipairs(redis.call('ZRANGE', base .. 'consumers', 0, 4095)) do
    if redis.call('ZSCORE', base .. 'held:' .. consumer, id) then return consumer end
  end
  return false
end
