--- @include "queue/sound"
--- @hooks overdue
--- @hooks upkeep
--- @if meets
--- @include "queue/sound_swept"
--- @end

--- What is over makes room before a producer is refused, or waits.

--- Rounds of a sweep that one step makes at the most.
local SWEEP_ROUNDS = 16

--- A damaged key leaves everything as it was: the step itself meets it.
local function sweep_room(base, queue)
  for _ = 1, SWEEP_ROUNDS do
    local overdue
    --- @each overdue = overdue(base, queue.now)
    if not overdue or sound_fault(base, queue.levels) then return end
    --- @if meets
    if sound_swept(base, queue.now, {}) then return end
    --- @end
    --- @each upkeep(base, queue)
  end
end
