--- Members of `scheduled` by due time: "<99 - level><position>" and the id. At the same instant higher levels come
--- first, then positions. A member says all that a list needs, so that a step that makes jobs ready need not read them.

--- Characters of a member before the id.
local MEMBER_PREFIX = 16

local function schedule_member(job, id)
  return string.format('%02d%014d', 99 - job.level, job.position) .. id
end
