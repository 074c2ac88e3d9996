--- @include "room/look"

--- What there is to say of the queue in numbers: into `counts` go names and numbers.
local function bounded_counted(base, counts)
  local look = room_look(base)
  local more = { 'bounded', look.count, 'producers', redis.call('ZCARD', base .. 'producers') }
  for _, part in ipairs(more) do counts[#counts + 1] = part end
  return counts
end
