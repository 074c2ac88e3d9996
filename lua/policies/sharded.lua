--- The name of a queue that is spread over others, its shards: it takes no jobs and no consumers itself. Its table says
--- which shards there are, where, and which of them take jobs.
--- HOOKS: refers, places, tabled
--- META: none
--- JOB: none
--- KEYS: shards
--- STORE: list
--- ORDER: 100
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: none

--- An error reply: jobs and consumers go to its shards.
local function sharded_refers()
  return redis.error_reply('SHARDED jobs and consumers go to the shards of this queue')
end

local function sharded_places(_, found)
  found[#found + 1] = { 'shards', 'hash' }
  return found
end
