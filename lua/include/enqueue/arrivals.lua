--- What of an enqueue is to be ready now and has a place with a policy.

--- {id=, level=, tags=} of each, in their order. `ids` holds false for those that are refused.
local function arrivals_of(plan, ids)
  local arrivals, index = {}, 0
  for _, run in ipairs(plan) do
    for i = index + 1, index + run.count do
      if ids[i] and run.due == 0 and run.tags ~= '' then
        arrivals[#arrivals + 1] = { id = ids[i], level = run.level, tags = run.tags }
      end
    end
    index = index + run.count
  end
  return arrivals
end
