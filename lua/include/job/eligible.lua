--- @hooks eligible

--- `ids` and their `values` without the jobs that must not be delivered any more; these go into `dropped`,
--- {id, value, ...}. A value is false where there is no job.
local function eligible_of(ids, values, now, dropped)
  local kept, kept_values = {}, {}
  for i = 1, #ids do
    local id, value, outcome = ids[i], values[i], nil
    if value then
      --- @each outcome = eligible(value, now)
    end
    if outcome then
      dropped[#dropped + 1] = id
      dropped[#dropped + 1] = value
    else
      kept[#kept + 1] = id
      kept_values[#kept] = value
    end
  end
  return kept, kept_values
end
