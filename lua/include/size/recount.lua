--- Sizes that one call adds up at the most.
local RECOUNT_MOST = 100000

--- The sum of the sizes is counted again. Answers 1 where it was another one. A queue with more jobs is left alone: no
--- step walks a backlog.
local function size_recount(base)
  if redis.call('HLEN', base .. 'sizes') > RECOUNT_MOST then return 0 end
  local sum = 0
  for _, size in ipairs(redis.call('HVALS', base .. 'sizes')) do sum = sum + (tonumber(size) or 0) end
  if (tonumber(redis.call('HGET', base .. 'meta', 'waiting_bytes')) or 0) == sum then return 0 end
  redis.call('HSET', base .. 'meta', 'waiting_bytes', string.format('%d', sum))
  return 1
end
