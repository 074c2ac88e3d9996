--- @include "room/grants"

--- Count the grants again, and drop what belongs to no producer; the producers that may have room then are notified.
--- Answers how much was changed, and is to be called again while it is something.
local function bounded_recount(base, queue)
  local sum, changed, grants = 0, 0, redis.call('ZRANGE', base .. 'grants', '0', '-1')
  for _, producer in ipairs(grants) do sum = sum + room_wish(base, producer) end
  if (tonumber(redis.call('HGET', base .. 'meta', 'granted')) or 0) ~= sum then
    redis.call('HSET', base .. 'meta', 'granted', string.format('%d', sum))
    changed = 1
  end
  for _, producer in ipairs(redis.call('HKEYS', base .. 'wishes')) do
    if not redis.call('ZSCORE', base .. 'grants', producer) and not redis.call('ZSCORE', base .. 'producers', producer) then
      changed = changed + redis.call('HDEL', base .. 'wishes', producer)
    end
  end
  grants_give(base, { now = queue.now })
  return changed
end
