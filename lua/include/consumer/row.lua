--- The first look of settle and pull at their consumer, as Redis answers it.

local function consumer_row(base, name)
  return redis.call('HMGET', base .. 'consumer:' .. name, 'term', 'state', 'priority', 'jobs', 'bytes', 'held_bytes',
    'worker', 'mode')
end
