--- @hooks places
--- @include "outgoing/places"

--- What a step may meet about any jobs, since others may wait for each: into `found`.
local function flows_meets(_, found, base)
  -- where nobody waits, nobody hears of an end
  local mine = flows_places(nil, {})
  local keys = {}
  for i, place in ipairs(mine) do keys[i] = base .. place[1] end
  if redis.call('EXISTS', unpack(keys)) == 0 then return found end
  found[#found + 1] = { 'scheduled', 'zset' }
  if redis.call('EXISTS', base .. 'edges') == 1 then outgoing_places(found) end
  for _, place in ipairs(mine) do found[#found + 1] = place end
  return found
end
