--- @hooks audience
--- @include "consumer/ahead"
--- @include "selector/ranks"
--- @include "queue/constants"

--- The consumers that wait and take a job of this run, best first.
local function selectors_able(base, run)
  selectors_open(base)
  local labels, found = selectors_labels(run), {}
  local floor
  for _, audience in ipairs(selectors_hearers(base, labels)) do
    local some = redis.call('ZRANGE', base .. 'interested:' .. audience, '0', WAKE_LAST, 'WITHSCORES')
    for i = 1, #some, 2 do found[#found + 1] = { some[i], tonumber(some[i + 1]), audience } end
  end
  if #found == 0 then return found end
  table.sort(found, function(one, other) return one[2] < other[2] end)
  local hears = {}
  for _, audience in ipairs(selectors_hearers(base, labels)) do hears[audience] = true end
  for _, one in ipairs(ahead_notified(base, 'audience')) do
    if hears[one[2]] and (not floor or one[1] > floor) then floor = one[1] end
  end
  local names = {}
  for i, one in ipairs(found) do
    if i > WAKE_MAX or floor and ahead_priority(one[2]) < floor then break end
    names[i] = one[1]
  end
  return names
end
