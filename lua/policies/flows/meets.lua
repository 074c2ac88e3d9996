--- @hooks awaits

--- What a step may meet about any jobs, since others may wait for each: into `found`.
local function flows_meets(_, found)
  found[#found + 1] = { 'scheduled', 'zset' }
  return flows_places(nil, found)
end
