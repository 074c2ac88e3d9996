--- The schema version that the first write stamps on a queue. A queue of another version is left alone.

--- What `meta` says to whoever finds it in Redis. It is also longer than the 64 bytes up to which Redis keeps a hash as
--- one packed list: as a table, reading a dozen fields costs a fifth.
local SCHEMA_ABOUT = 'This hash belongs to a queue of rqueue, a worker queue for Python. Its fields: docs/redis_keys.md'

--- An error reply where the queue was written by another version, else nil. `version`: field `v` of meta, or false.
local function schema_fault(version)
  if not version or version == '1' then return nil end
  return redis.error_reply('SCHEMA this queue was written by another version of rqueue: schema ' .. version)
end

local function schema_stamp(meta)
  redis.call('HSET', meta, 'v', '1', 'about', SCHEMA_ABOUT)
end
