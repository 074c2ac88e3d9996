--- @include "order/lists_count"

--- How many of the ready jobs stand in no class: those in the lists, and those that another policy has a place for.
local function unlabelled_count(base)
  local total = lists_count(base)
  --- @if beside
  local sets = {}
  --- @each beside(base, sets)
  for _, key in ipairs(sets) do total = total + redis.call('ZCARD', key) end
  --- @end
  return total
end
