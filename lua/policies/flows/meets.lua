--- @hooks places
--- @include "outgoing/places"

--- What a step may meet about any jobs, since others may wait for each: into `found`.
local function flows_meets(_, found, base)
  found[#found + 1] = { 'scheduled', 'zset' }
  if redis.call('EXISTS', base .. 'edges') == 1 then outgoing_places(found) end
  return flows_places(nil, found)
end
