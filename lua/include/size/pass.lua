--- @include "size/over"

--- These jobs ({id=, again=}) are gone for good, unless they are to come `again`.
local function size_pass(base, jobs)
  local ids = {}
  for _, job in ipairs(jobs) do
    if not job.again then ids[#ids + 1] = job.id end
  end
  size_over(base, ids)
end
