--- @include "queue/constants"

--- The highest priority among notified consumers (but for `except`) that may still take a job; nil where priorities
--- are not in use.
local function consumer_highest(base, ranked, except)
  if not ranked then return nil end
  local highest
  for _, name in ipairs(redis.call('ZRANGE', base .. 'notified', 0, WAKE_MAX - 1)) do
    local row = redis.call('HMGET', base .. 'consumer:' .. name, 'priority', 'jobs')
    local free = (tonumber(row[2]) or 0) - redis.call('LLEN', base .. 'held:' .. name)
    local priority = tonumber(row[1]) or 0
    if name ~= except and free > 0 and (not highest or priority > highest) then highest = priority end
  end
  return highest
end
