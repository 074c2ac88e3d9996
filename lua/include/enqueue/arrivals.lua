--- What of an enqueue is new, and what of that is to be ready now.

--- How many bytes their envelopes have, and the largest one. `arguments` is {..., id, envelope, ...} from `first` on.
local function arrivals_bytes(ids, arguments, first)
  local bytes, largest = 0, 0
  for i = 1, (#arguments - first + 1) / 2 do
    if ids[i] then
      local size = #arguments[first + 2 * i - 1]
      bytes, largest = bytes + size, math.max(largest, size)
    end
  end
  return bytes, largest
end

--- How many. `ids` holds false for those that are refused.
local function arrivals_count(plan, ids)
  local count, index = 0, 0
  for _, run in ipairs(plan) do
    for i = index + 1, index + run.count do
      if ids[i] and run.due == 0 then count = count + 1 end
    end
    index = index + run.count
  end
  return count
end

--- {id=, level=, tags=} of those that have places with policies, in their order.
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
