--- The two looks that settle and pull begin with, as Redis answers them.

local function queue_row(base)
  return redis.call('HMGET', base .. 'meta', 'v', 'clock', 'levels', 'paused', 'timer', 'ranked', 'ended_since',
    'keep_ms', 'history_rows_max', 'promoted', 'acked', 'history_rows', 'max_deliveries')
end

local function queue_consumer_row(base, name)
  return redis.call('HMGET', base .. 'consumer:' .. name, 'term', 'state', 'priority', 'jobs', 'bytes', 'held_bytes',
    'worker', 'mode')
end
