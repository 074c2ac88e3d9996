--- @include "queue/constants"
--- @include "queue/sound_type"
--- @include "queue/sound_consumers"

--- Whether other consumers wait, which may be notified of what this one leaves.

--- Raises an error where something else has written a key by which they are notified: this is asked before the consumer
--- moves.
local function others_wait(base, queue, consumer)
  local names = redis.call('ZRANGE', base .. 'interested', '0', '1')
  if #names == 0 or not names[2] and names[1] == consumer.name and not queue.ranked then return false end
  names[#names + 1] = redis.call('ZREVRANGE', base .. 'interested', '0', '0')[1]
  names[#names + 1] = consumer.name
  --- @each waiters(base, names)
  local fault = sound_type(base, 'notified', 'zset')
  if queue.ranked and not fault then
    -- no consumer is notified before those that are ahead of it
    for _, name in ipairs(redis.call('ZRANGE', base .. 'notified', '0', WAKE_LAST)) do names[#names + 1] = name end
  end
  fault = fault or sound_consumers(base, names)
  if fault then error(fault) end
  return true
end
