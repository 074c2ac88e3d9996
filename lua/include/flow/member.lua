--- Ids that say which job they count for, "<job>.<place>".

--- The job that an id is derived from, its place, and how the ids of that job's members are written, for string.format:
--- most come and end in their order, so who reads many compares each with the next one first. nil where the id is not
--- derived.
local function member_read(id)
  local job, digits = string.match(id, '^(.+)%.(%d+)$')
  -- a place is said in one way
  if not job or string.byte(digits) == 48 and digits ~= '0' then return nil end
  return job, tonumber(digits), string.gsub(job, '%%', '%%%%') .. '.%d'
end
