--- @hooks kept

--- A consumer has taken these jobs; `jobs` = {id, value, ...}.
local function unique_taken(base, _, jobs)
  local started = {}
  for i = 1, #jobs, 2 do
    local its = unique_tag(jobs[i + 1])
    if its and its.lasts == 's' then
      its.id = jobs[i]
      started[#started + 1] = its
    end
  end
  unique_free(base, started)
end
