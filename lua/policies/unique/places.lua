--- What it keeps beside the jobs.
local function unique_places(_, found)
  found[#found + 1] = { 'unique', 'hash' }
  found[#found + 1] = { 'periods', 'zset' }
  return found
end
