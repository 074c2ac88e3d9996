--- One of the queues over which one logical queue is spread. It takes a job only from who knows the table of shards as it
--- knows it itself. Where keys move to another shard it is given a fence: what stands before it goes first, and until all
--- of that is gone the shard to which they moved waits, paused by its fences. So the order of a key holds through the
--- move, and no job is moved.
--- HOOKS: addressed, crowded, halted, vacated, informed, lifted, aware, places
--- META: shard_of, shard_version, shut, fence, fence_by, fence_at, fences, fenced_pause, ids_fence,
---   ids_gone, ids_tailed
--- JOB: none
--- KEYS: kept_shards
--- STORE: list
--- ORDER: 99
--- FAST: yes
--- STRUCTURE: none
--- EXCLUDES: sticky, hold, last_value, ring, limits, selectors, refusals, sorted, front, flows, schedules, lifetime,
---   shares
--- @include "fence/older"

--- The runs of an enqueue end in "#" and the version of the table by which it came here. Answers them without it; an
--- error reply where this shard knows another table, or takes no jobs any more.
local function shard_addressed(base, runs)
  local row = redis.call('HMGET', base .. 'meta', 'shard_version', 'shut', 'shard_of')
  local plain, version, rest = string.match(runs, '^([^#]*)#(%d+)(.*)$')
  if not version or version ~= row[1] or row[2] then
    return redis.error_reply('SHARDS ' .. (row[1] or '0') .. ' ' .. (version or '-') .. ' ' .. (row[3] or ''))
  end
  return plain .. rest
end

local function shard_places(_, found)
  found[#found + 1] = { 'kept_shards', 'hash' }
  return found
end

--- The version of the table that it goes by.
local function shard_aware(base)
  return tonumber(redis.call('HGET', base .. 'meta', 'shard_version')) or 0
end

--- Whether the end of this step is to look at the fence; an error where a key of another type is in its way.
local function shard_crowded(base)
  local row = redis.call('HMGET', base .. 'meta', 'fence', 'shut')
  if row[1] then fence_older(base, row[1]) end
  return (row[1] or row[2] == '1') and true or nil
end

--- People pause or resume it: while its fences stand that is noted. Answers whether it ran for them before; nil without
--- fences.
local function shard_halted(base, pause)
  local row = redis.call('HMGET', base .. 'meta', 'fences', 'fenced_pause')
  if not row[1] then return nil end
  if pause then
    redis.call('HSET', base .. 'meta', 'fenced_pause', '1')
    return row[2] and 0 or 1
  end
  redis.call('HDEL', base .. 'meta', 'fenced_pause')
  return row[2] and 1 or 0
end
