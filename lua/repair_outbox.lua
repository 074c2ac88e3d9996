--- Set the outbox right: what is named in it has a job, and each job is named.
--- KEYS: meta, guard
--- ARGV: members...
---   members: at most 250
--- REPLY: {now, how many were put right}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/clock"
--- @include "queue/schema"
--- @include "queue/sound_type"

local meta = KEYS[1]
local FIRST = 1

local base = string.sub(meta, 1, -5)
local row = redis.call('HMGET', meta, 'v', 'clock')
local fault = schema_fault(row[1])
if fault then return fault end
if #ARGV < 1 or #ARGV > 250 then return redis.error_reply('BADARGS the outbox is set right for 1 to 250 members') end
fault = sound_type(base, 'outgoing', 'zset') or sound_type(base, 'outgoing:jobs', 'hash')
if fault then return fault end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
local changed = 0
for i = FIRST, #ARGV do
  if redis.call('HEXISTS', base .. 'outgoing:jobs', ARGV[i]) == 1 then
    changed = changed + redis.call('ZADD', base .. 'outgoing', 'NX', '0', ARGV[i])
  else
    changed = changed + redis.call('ZREM', base .. 'outgoing', ARGV[i])
  end
end
return { clock(row[2]), changed }
