--- @hooks tell

--- A pull is over that may have made jobs ready which this consumer does not take: others are notified. Sets without
--- jobs are forgotten.
local function refusals_closing(base, queue, consumer)
  if REFUSALS.fresh_any and not queue.paused then
    local timer = redis.call('HGET', base .. 'meta', 'timer')
    refusals_tell(base, queue.now, 0, timer, queue.ranked, { except = consumer.name })
  end
  local over = {}
  for terms in pairs(refusals_sets(base)) do
    if redis.call('EXISTS', base .. 'refused:' .. terms) == 0 then over[#over + 1] = terms end
  end
  if #over > 0 then redis.call('SREM', base .. 'refusals', unpack(over)) end
end
