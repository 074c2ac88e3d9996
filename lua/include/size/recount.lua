--- @include "queue/count"
--- @include "size/again"

--- Sizes that one step adds up at the most. Where there are more, a step looks at about so many of them.
local RECOUNT_MOST, RECOUNT_SOME = 100000, '500'

--- In one step. Answers 1 where the sum was another one.
local function size_recount_all(base)
  local sum = 0
  for _, size in ipairs(redis.call('HVALS', base .. 'sizes')) do sum = sum + (tonumber(size) or 0) end
  if (tonumber(redis.call('HGET', base .. 'meta', 'waiting_bytes')) or 0) == sum then return 0 end
  redis.call('HSET', base .. 'meta', 'waiting_bytes', string.format('%d', sum))
  return 1
end

--- The sum of the sizes is counted again. Answers 1 where it was another one, or where this is to be called again.
---
--- Many sizes are counted in many steps, and the queue goes on between them: field `recounted` of `meta` is the sum anew,
--- a size that is in it has a 0 before it, and so has what is noted meanwhile; what goes is taken off it. When all have
--- been looked at it is the sum that counts, and the 0s are taken away again. Field `recount_at` says which of the two is
--- being done, and how far it is: the next call goes on there.
local function size_recount(base)
  local meta, sizes = base .. 'meta', base .. 'sizes'
  local at = redis.call('HGET', meta, 'recount_at')
  if not at then
    if redis.call('HLEN', sizes) <= RECOUNT_MOST then return size_recount_all(base) end
    redis.call('HSET', meta, 'recounted', '0')
    at = 'count 0'
  end
  local doing, cursor = string.match(at, '^(%l+) (%d+)$')
  local counts = doing == 'count'
  local page = redis.call('HSCAN', sizes, cursor or '0', 'COUNT', RECOUNT_SOME)
  local fresh, more = {}, 0
  for i = 1, #page[2], 2 do
    local size = page[2][i + 1]
    if string.find(size, '^%d+$') and size_again(size) ~= counts then
      fresh[#fresh + 1] = page[2][i]
      fresh[#fresh + 1] = string.format(counts and '0%d' or '%d', tonumber(size))
      more = more + tonumber(size)
    end
  end
  if #fresh > 0 then redis.call('HSET', sizes, unpack(fresh)) end
  if counts and more > 0 then count_up(meta, 'recounted', string.format('%d', more)) end
  if page[1] ~= '0' then
    redis.call('HSET', meta, 'recount_at', (counts and 'count ' or 'clear ') .. page[1])
    return 1
  end
  if not counts then
    redis.call('HDEL', meta, 'recount_at')
    return 0
  end
  local sum = tonumber(redis.call('HGET', meta, 'recounted')) or 0
  redis.call('HSET', meta, 'waiting_bytes', string.format('%d', sum), 'recount_at', 'clear 0')
  redis.call('HDEL', meta, 'recounted')
  return 1
end
