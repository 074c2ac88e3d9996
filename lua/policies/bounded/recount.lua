--- @include "room/grants"

--- Count the grants again, and drop what belongs to no producer; the producers that may have room then are notified.
--- Answers how much was `changed`, with what others have, and is to be called again while it is something.
local function bounded_recount(base, queue, changed)
  local sum, sum_bytes, grants = 0, 0, redis.call('ZRANGE', base .. 'grants', '0', '-1')
  changed = changed or 0
  for _, producer in ipairs(grants) do
    local jobs, bytes = room_wish(base, producer)
    sum, sum_bytes = sum + jobs, sum_bytes + bytes
  end
  for field, count in pairs({ granted = sum, granted_bytes = sum_bytes }) do
    if (tonumber(redis.call('HGET', base .. 'meta', field)) or 0) ~= count then
      redis.call('HSET', base .. 'meta', field, string.format('%d', count))
      changed = changed + 1
    end
  end
  for _, producer in ipairs(redis.call('HKEYS', base .. 'wishes')) do
    if not redis.call('ZSCORE', base .. 'grants', producer) and not redis.call('ZSCORE', base .. 'producers', producer) then
      changed = changed + redis.call('HDEL', base .. 'wishes', producer)
    end
  end
  grants_give(base, { now = queue.now })
  return changed
end
