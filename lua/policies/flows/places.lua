--- What it keeps beside the jobs.
local function flows_places(_, found)
  found[#found + 1] = { 'deferred', 'hash' }
  found[#found + 1] = { 'edges', 'hash' }
  found[#found + 1] = { 'stops', 'hash' }
  found[#found + 1] = { 'unsealed', 'zset' }
  return found
end
