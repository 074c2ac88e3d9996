--- @include "queue/sound_type"
--- @hooks meets

--- Whether the keys that policies keep for jobs are of their types.

--- An error reply where something else has written one that a step about these jobs may meet; else nil. `values`: as
--- they are stored, or their tags; false where there is none. `queue`: of a settle, in which policies note what is there.
local function sound_jobs(base, values, queue)
  local found = {}
  --- @each found = meets(values, found, base, queue)
  for _, place in ipairs(found) do
    local fault = sound_type(base, place[1], place[2])
    if fault then return fault end
  end
end
