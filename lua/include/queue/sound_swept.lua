--- @include "queue/sound_jobs"
--- @hooks swept

--- The same as `sound_jobs` for a step that sweeps, and for jobs with these `values`.
local function sound_swept(base, now, values)
  --- @each values = swept(base, now, values)
  return sound_jobs(base, values)
end
