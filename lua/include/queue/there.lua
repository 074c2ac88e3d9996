--- Whether there is such a queue. Of one that was deleted nothing is left but v, term and deleted; who configures it,
--- enqueues or registers makes it anew.
local function queue_there(base)
  local meta = base .. 'meta'
  local row = redis.call('HMGET', meta, 'v', 'deleted', 'clock', 'about')
  if not row[1] then return false end
  if not row[2] then return true end
  local most = 3 + (row[3] and 1 or 0) + (row[4] and 1 or 0)
  return redis.call('HLEN', meta) > most or redis.call('EXISTS', base .. 'consumers') == 1
end
