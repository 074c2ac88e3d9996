--- @include "order/score"

--- Where a ready job stands in a sorted set: its score, as text, and its member.
local function standing_of(job)
  local member
  --- @each member = member(job)
  if member then return score_behind(job.level), member end
  member = schedule_member(job, job.id)
  return job.due > 0 and string.format('%d', score_of(job.level, job.due)) or score_text(member), member
end
