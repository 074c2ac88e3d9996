--- @include "room/grants"

--- The end of a step after which there may be room. `queue` = {now=, used=}: whose grant this step has used.
local function bounded_vacated(base, queue)
  grants_give(base, queue)
end
