--- The first write of a step that makes a queue stamps it.

--- `about` is what `meta` says to a person who finds it in Redis. It is also longer than the 64 bytes up to which Redis
--- keeps a hash as one packed list: as a table, reading a dozen fields costs a fifth.
local function schema_stamp(meta)
  --- @stamp
  redis.call('HSET', meta, 'v', STAMP, 'about',
    'This hash belongs to a queue of rqueue, a worker queue for Python. Its fields: docs/redis_keys.md')
end
