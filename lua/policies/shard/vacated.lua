--- @include "fence/older"
--- @include "fence/word"

--- The end of a step by which jobs may have left: where the last one before the fence is gone, or the last one of a shard
--- that takes no more, its consumers have a word of it.
local function shard_vacated(base)
  local row = redis.call('HMGET', base .. 'meta', 'fence', 'shut', 'marked')
  if row[1] and not fence_older(base, row[1]) then
    redis.call('HDEL', base .. 'meta', 'fence', 'fence_by', 'fence_at')
    fence_word(base, 2)
  end
  -- what was cancelled leaves a mark until its turn comes
  if row[2] == '1' and redis.call('HLEN', base .. 'jobs') <= (tonumber(row[3]) or 0) then
    -- said once: who hears it may pull
    redis.call('HSET', base .. 'meta', 'shut', '2')
    fence_word(base, 2)
  end
end
