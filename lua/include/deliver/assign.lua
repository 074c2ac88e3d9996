--- @include "consumer/lists"

--- Assign a job to a waiting consumer: it holds it, and its wake list has all that it needs to begin. `jobs`: how many
--- it may hold, as text. `held_bytes`: its account then, nil or false where it has none.
local function deliver_assign(base, now, consumer, priority, jobs, held_bytes, id, value)
  local last = redis.call('RPUSH', base .. 'held:' .. consumer, id) >= (tonumber(jobs) or 1)
  consumer_lists_move(base, now, consumer, 'interested', last and 'not_interested' or 'notified', priority, held_bytes)
  redis.call('RPUSH', base .. 'wake:' .. consumer, 'J' .. struct.pack('>I4', #id) .. id .. value)
end
