--- @include "move"

--- Put a job into the hands of a waiting consumer, and into its wake list with all it needs to begin. `last`: whether it
--- has no room after that. `held_bytes`: its account then, nil or false where it has none.
local function into_hands(base, now, consumer, priority, last, held_bytes, id, value)
  redis.call('RPUSH', base .. 'held:' .. consumer, id)
  consumer_move(base, now, consumer, 'interested', last and 'not_interested' or 'notified', priority, held_bytes)
  redis.call('RPUSH', base .. 'wake:' .. consumer, 'J' .. struct.pack('>I4', #id) .. id .. value)
end
