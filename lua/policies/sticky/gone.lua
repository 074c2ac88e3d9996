--- @hooks tell

--- A consumer is registered no more, and holds nothing.
local function sticky_gone(base, queue, consumer)
  if sticky_free(base, consumer) > 0 and not queue.paused then
    sticky_tell(base, queue.now, 0, redis.call('HGET', base .. 'meta', 'timer'), queue.ranked)
  end
end
