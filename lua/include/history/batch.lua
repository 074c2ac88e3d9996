--- @include "queue/count"
--- @include "queue/constants"

--- History: one stream entry holds the rows of one settled batch (`b`, packed by the worker) or rows written by a
--- script (`j`, one JSON object per line); `n` says how many, `r` which of a batch were refused.

--- Keep the stream within `max` rows: the oldest entries go, a few per call. What is gone is noted, so that a reader
--- that comes later knows whether it missed something: the id of the last entry, and how many rows in all.
local function history_batch_trim(base, rows, max)
  max = tonumber(max) or HISTORY_ROWS
  if rows <= max then return end
  local stream, meta = base .. 'history', base .. 'meta'
  local last, gone = nil, 0
  for _ = 1, 8 do
    local oldest = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
    if not oldest then
      rows = 0
      break
    end
    local count = 1
    for i = 1, #oldest[2], 2 do
      if oldest[2][i] == 'n' then count = tonumber(oldest[2][i + 1]) or 1 end
    end
    redis.call('XDEL', stream, oldest[1])
    last, gone, rows = oldest[1], gone + count, rows - count
    if rows <= max then break end
  end
  redis.call('HSET', meta, 'history_rows', string.format('%d', rows))
  if last then
    redis.call('HSET', meta, 'history_trimmed', last)
    count_up(meta, 'history_gone', gone)
  end
end

--- The rows of a settle call, `count` as text; `refused`: indices of rows of stale jobs. Returns the entry's id, or an
--- error reply.
local function history_batch_add(base, batch, count, refused)
  if refused ~= '' then return redis.pcall('XADD', base .. 'history', '*', 'n', count, 'b', batch, 'r', refused) end
  return redis.pcall('XADD', base .. 'history', '*', 'n', count, 'b', batch)
end

--- Count them, and the jobs of the call that are done.
local function history_batch_count(base, queue, count, said)
  if said.gone == 0 and count == '0' then return end
  queue.rows = queue.rows + count
  redis.call('HSET', base .. 'meta', 'acked', string.format('%d', queue.acked + said.gone), 'history_rows',
    string.format('%d', queue.rows))
  if count ~= '0' then history_batch_trim(base, queue.rows, queue.history_max) end
end
