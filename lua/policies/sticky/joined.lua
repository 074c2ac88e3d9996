--- @hooks tell

--- One more consumer is registered: where the queue is to be balanced anew then, nobody owns anything any more. What is
--- held stays with its consumers, and goes before what comes after it in its group.
local function sticky_joined(base, _, mode, _, queue)
  if mode == 'browse' or redis.call('HGET', base .. 'meta', 'rebalance') ~= '1' then return nil end
  if sticky_free(base) > 0 and not queue.paused then
    sticky_tell(base, queue.now, 0, queue.timer, queue.ranked)
  end
end
