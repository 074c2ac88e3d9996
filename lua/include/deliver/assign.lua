--- @include "consumer/lists"

--- Assign a job to a waiting consumer: it holds it, and its wake list has all that it needs to begin. `jobs`: how many
--- it may hold, as text. `held_bytes`: its account then, nil or false where it has none. The consumer's hash and
--- `interested` were read before. Returns an error reply where another key is of another type: nothing is changed then.
local function deliver_assign(base, now, consumer, jobs, held_bytes, id, value)
  local held, to, added = base .. 'held:' .. consumer, 'notified', nil
  local count = redis.pcall('RPUSH', held, id)
  if type(count) == 'table' then return count end
  if count >= (tonumber(jobs) or 1) then
    to = 'not_interested'
    added = redis.pcall('SADD', base .. to, consumer)
  else
    added = redis.pcall('ZADD', base .. to, now + NOTIFIED_MS, consumer)
  end
  local failed = type(added) == 'table' and added
    or redis.pcall('RPUSH', base .. 'wake:' .. consumer, 'J' .. struct.pack('>I4', #id) .. id .. value)
  if type(failed) == 'table' then
    redis.call('RPOP', held)
    if added == 1 then redis.call(to == 'notified' and 'ZREM' or 'SREM', base .. to, consumer) end
    return failed
  end
  redis.call('ZREM', base .. 'interested', consumer)
  --- @each waits(base, consumer)
  if held_bytes then
    redis.call('HSET', base .. 'consumer:' .. consumer, 'state', to, 'held_bytes', held_bytes)
  else
    redis.call('HSET', base .. 'consumer:' .. consumer, 'state', to)
  end
end
