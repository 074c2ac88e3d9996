--- @hooks kept

--- Periods that are over: where the job is not there any more, its key is free. True where there are more.
local function unique_upkeep(base, queue)
  local keys = redis.call('ZRANGEBYSCORE', base .. 'periods', '-inf', string.format('%d', queue.now), 'LIMIT', '0',
    '64')
  if #keys == 0 then return false end
  local owners, free = redis.call('HMGET', base .. 'unique', unpack(keys)), {}
  for i, key in ipairs(keys) do
    local its = owners[i] and unique_tag(redis.call('HGET', base .. 'jobs', owners[i]))
    if not its or its.key ~= key then free[#free + 1] = key end
  end
  redis.call('ZREM', base .. 'periods', unpack(keys))
  if #free > 0 then redis.call('HDEL', base .. 'unique', unpack(free)) end
  return #keys == 64
end
