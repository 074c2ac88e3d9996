--- The table as it is to be: `fields`, {name, value, ...}, where it has version `before` still; 0: there is none. Answers
--- the version that it has now, and whether it was changed.
local function sharded_tabled(base, before, fields)
  local version = tonumber(redis.call('HGET', base .. 'shards', 'version')) or 0
  if version ~= before then return { version, 0 } end
  if version == 0 and redis.call('EXISTS', base .. 'jobs', base .. 'consumers') > 0 then
    return redis.error_reply('CONFLICT shards the queue has jobs or consumers of its own: shards are for a new name')
  end
  if version == 0 and redis.call('EXISTS', base .. 'sources') == 1 then
    return redis.error_reply('CONFLICT shards dead letters or expired jobs of other queues come here: shards take none')
  end
  redis.call('HSET', base .. 'shards', unpack(fields))
  return { tonumber(redis.call('HGET', base .. 'shards', 'version')), 1 }
end
