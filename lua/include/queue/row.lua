--- The first look of settle and pull at their queue, as Redis answers it.

local function queue_row(base)
  return redis.call('HMGET', base .. 'meta', 'v', 'clock', 'levels', 'paused', 'timer', 'ranked', 'ended_since',
    'keep_ms', 'history_rows_max', 'promoted', 'acked', 'history_rows', 'max_deliveries')
end
