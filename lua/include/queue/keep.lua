--- @include "queue/constants"

--- How long the record of a job lasts at least, ms. With a term that nobody can have set, as -1, each would be gone as it
--- is written.
local function queue_keep(queue)
  local keep = tonumber(queue.keep)
  return keep and keep >= 1 and keep < 2 ^ 50 and keep or KEEP_MS
end
