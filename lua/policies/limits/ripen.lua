--- @include "schedule/ripen"

--- A step is about to compare jobs: what is due becomes ready first.
local function limits_ripen(base, queue, taker)
  ripen_due(base, queue, taker)
end
