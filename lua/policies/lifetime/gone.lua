--- @include "queue/all_keys"
--- @include "consumer/most"
--- @include "order/any"

local function lifetime_consumed(base)
  for _, name in ipairs(redis.call('ZRANGE', base .. 'consumers', '0', CONSUMERS_LAST)) do
    if redis.call('HGET', base .. 'consumer:' .. name, 'mode') == 'acquire' then return true end
  end
  return false
end

--- A consumer has left, or a job that waited when the last one left: if there is no consumer, the queue goes after the
--- delay.
local function lifetime_gone(base)
  local row = redis.call('HMGET', base .. 'meta', 'delete_if', 'delete_after_ms', 'had_consumer')
  if row[1] ~= '1' and row[1] ~= '2' or not row[3] or lifetime_consumed(base) then return end
  if row[1] == '1' and any_job(base) then
    redis.call('HSET', base .. 'meta', 'had_consumer', 'l')
    return
  end
  redis.call('HDEL', base .. 'meta', 'had_consumer')
  -- what goes to other queues is sent first, and a target of others stays
  if all_keys_needed(base) then return end
  local after = string.format('%d', math.min(math.max(1, tonumber(row[2]) or 0), 2 ^ 50))
  for _, key in ipairs(all_keys(base, nil, true)) do redis.call('PEXPIRE', key, after) end
end
