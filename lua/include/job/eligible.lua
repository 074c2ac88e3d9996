--- @hooks eligible

--- `ids` and their `values` without the jobs that must not be delivered any more; these go into `dropped`,
--- {id, value, ...}. A value is false where there is no job.
local function eligible_of(ids, values, now, dropped)
  local kept, kept_values = ids, values
  for i = 1, #ids do
    local id, value, outcome = ids[i], values[i], nil
    if value then
      --- @each outcome = eligible(value, now)
    end
    if outcome then
      if kept == ids then
        -- from the first one on: mostly there is none
        kept, kept_values = {}, {}
        for j = 1, i - 1 do kept[j], kept_values[j] = ids[j], values[j] end
      end
      dropped[#dropped + 1] = id
      dropped[#dropped + 1] = value
    elseif kept ~= ids then
      kept[#kept + 1] = id
      kept_values[#kept] = value
    end
  end
  return kept, kept_values
end
