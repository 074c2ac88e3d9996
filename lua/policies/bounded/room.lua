--- @include "room/grants"

--- A producer waits for room for so many `jobs` and `bytes`, and says again within `wait` ms that it does; 0: it gives up. Answers
--- granted, waits, free (it is to enqueue: nothing bounds the queue, or its jobs never fit) or over.
local function bounded_room(base, now, producer, wish)
  if wish.wait == 0 then
    if redis.call('ZREM', base .. 'producers', producer) == 1 then redis.call('HDEL', base .. 'wishes', producer) end
    grants_give(base, { now = now, used = producer })
    redis.call('DEL', base .. 'room:' .. producer)
    return 'over'
  end
  if redis.call('ZSCORE', base .. 'grants', producer) then
    -- its word was lost
    grants_tell(base, producer)
    return 'granted'
  end
  local look = room_look(base)
  if not look.blocks or not look.bounded or wish.jobs > look.most or wish.bytes > look.most_bytes then
    if redis.call('ZREM', base .. 'producers', producer) == 1 then redis.call('HDEL', base .. 'wishes', producer) end
    grants_tell(base, producer)
    return 'free'
  end
  if not redis.call('ZSCORE', base .. 'producers', producer) then
    redis.call('ZADD', base .. 'producers', count_up(base .. 'meta', 'asked', 1), producer)
  end
  redis.call('HSET', base .. 'wishes', producer, string.format('%d,%d,%d', wish.jobs, now + wish.wait, wish.bytes))
  grants_give(base, { now = now })
  return redis.call('ZSCORE', base .. 'grants', producer) and 'granted' or 'waits'
end
