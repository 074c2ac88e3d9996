--- @include "room/grants"

local function bounded_upkeep(base, queue)
  grants_give(base, { now = queue.now })
end
