--- Ids that say which job they count for, "<job>.<place>".

--- A function that reads one id after the other: the job that it is derived from and its place, nil where it is not
--- derived. Members mostly come and end in their order: then one comparison is all.
local function member_reader()
  local job, place, next_one
  local format = string.format
  return function(id)
    if job and id == format(next_one, place + 1) then
      place = place + 1
      return job, place
    end
    local parent, digits = string.match(id, '^(.+)%.(%d+)$')
    -- a place is said in one way
    if not parent or string.byte(digits) == 48 and digits ~= '0' then return nil end
    job, place, next_one = parent, tonumber(digits), string.gsub(parent, '%%', '%%%%') .. '.%d'
    return job, place
  end
end
