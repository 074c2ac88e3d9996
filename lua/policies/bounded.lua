--- A queue with a greatest number of jobs, or bytes, that wait. What does not fit is refused, whole, or its producer waits:
--- in the order of their coming, until the queue has fallen to its mark; then so many of them as fit each get a grant.
--- A grant is a reservation, so that nobody is woken in vain and nobody overtakes those who wait; it ends at its
--- deadline. What comes back from a consumer may exceed the limit: it is never refused (Q-67, X-16).
--- HOOKS: fit, crowded, vacated, upkeep, room, counted, recount, options, places
--- META: max_jobs, overflow, resume, count_held, granted, granted_bytes, asked
--- JOB: none
--- KEYS: producers, grants, wishes, room:<producer>
--- STORE: list
--- ORDER: 95
--- FAST: yes
--- STRUCTURE: none
--- EXCLUDES: ring
--- @include "room/look"
--- @include "room/sound"

--- Whether a producer waits, or has a grant, so that this step is to look at them at its end; an error reply where one of
--- their keys is of another type.
local function bounded_crowded(base)
  if redis.call('EXISTS', base .. 'producers', base .. 'grants') == 0 then return nil end
  local fault = room_sound(base)
  if fault then return fault end
  -- where one of the places that are counted is of another type, that is met now
  room_look(base)
  return true
end

local function bounded_places(_, found)
  found[#found + 1] = { 'producers', 'zset' }
  found[#found + 1] = { 'grants', 'zset' }
  found[#found + 1] = { 'wishes', 'hash' }
  return found
end

local function bounded_options(_, limits)
  limits.max_jobs, limits.overflow, limits.count_held = { 0, 1000000000 }, { 0, 1 }, { 0, 1 }
  limits.resume = { 1, 100 }
end
