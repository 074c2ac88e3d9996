--- @hooks tell

--- A pull is over that may have made jobs ready which this consumer does not take: other consumers are notified.
local function selectors_closing(base, queue, consumer)
  if not SELECTORS.fresh_any or queue.paused then return end
  selectors_tell(base, queue.now, 0, redis.call('HGET', base .. 'meta', 'timer'), queue.ranked, { except = consumer.name })
end
