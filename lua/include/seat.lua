--- Members of `scheduled` by due time: "<99 - level><position>" and the id. At the same instant higher levels come
--- first, then positions. A seat says all that a list needs, so that whoever makes jobs ready need not read them.

--- Characters of a seat before the id.
local SEAT = 16

local function seat_of(job, id)
  return string.format('%02d%014d', 99 - job.level, job.position) .. id
end
