--- Watchers of one job: `watch:<id>` is the stream that they block on, there only while it is watched.

--- Something has changed: who watches looks. Without a watcher nothing is written, and neither where something else has
--- written that key: the next look is refused for that.
local function watch_ring(base, id)
  redis.pcall('XADD', base .. 'watch:' .. id, 'NOMKSTREAM', 'MAXLEN', '1', '*', 'r', '1')
end
