--- @include "fence/older"
--- @include "fence/word"
--- @include "fence/ids"
--- @include "consumer/most"

--- The shard of queue `of` is informed of a version of the table. `role`: "" | "fence": what it has goes before what comes to
--- others | "shut": so it does, and nothing comes here any more | "wait": it waits for the fences of `sources`, numbers
--- of other shards with spaces between them. `fields` are those of the table, which is kept here too: where it is lost,
--- it can be put back from its shards. Said again it changes nothing. Answers what it is to it: new, known, old, or
--- lacks, where it needs the fields.
local function shard_informed(base, of, version, role, sources, fields)
  local meta = base .. 'meta'
  local row = redis.call('HMGET', meta, 'shard_version', 'shut', 'shard_of', 'fence', 'seq')
  local known = tonumber(row[1]) or 0
  if version < known then return 'old' end
  if tonumber(redis.call('HGET', base .. 'kept_shards', 'version')) ~= version then
    if not fields[1] then return 'lacks' end
    redis.call('DEL', base .. 'kept_shards')
    redis.call('HSET', base .. 'kept_shards', unpack(fields))
  end
  if version == known then
    -- what is damaged is said anew: whose shard it is, and a fence that is no position, before which stands all there is
    if not row[3] then redis.call('HSET', meta, 'shard_of', of) end
    local fence, last = row[4], tonumber(row[5]) or 0
    if fence and (tonumber(fence) or last + 1) > last then
      fence = string.format('%d', last)
      redis.call('HSET', meta, 'fence', fence)
      redis.call('HDEL', meta, 'fence_by', 'fence_at')
    end
    if fence and not fence_older(base, fence) then redis.call('HDEL', meta, 'fence', 'fence_by', 'fence_at') end
    return 'known'
  end
  redis.call('HSET', meta, 'shard_of', of, 'shard_version', string.format('%d', version))
  if role == 'fence' or role == 'shut' then
    redis.call('HSET', meta, 'fence', redis.call('HGET', meta, 'seq') or '0')
    redis.call('HDEL', meta, 'fence_by', 'fence_at')
    if not fence_older(base, redis.call('HGET', meta, 'fence')) then redis.call('HDEL', meta, 'fence') end
  end
  -- one that was shut has lost its keys before
  if role ~= 'wait' and not row[2] then fence_ids_mark(base) end
  if role == 'shut' then redis.call('HSET', meta, 'shut', '1') else redis.call('HDEL', meta, 'shut') end
  if role == 'wait' and sources ~= '' and not redis.call('HGET', meta, 'fences') then
    if redis.call('HGET', meta, 'paused') == '1' then redis.call('HSET', meta, 'fenced_pause', '1') end
    redis.call('HSET', meta, 'paused', '1', 'fences', sources)
  end
  -- pools that serve the shard look whether there are others
  fence_word(base, CONSUMERS_MOST)
  return 'new'
end
