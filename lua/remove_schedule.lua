--- A schedule is removed: its jobs stay, it enqueues no more.
--- KEYS: meta, guard
--- ARGV: name
--- REPLY: {now, 1, or 0 where there was none}
--- ERRORS: DAMAGED | SCHEMA
--- @include "queue/clock"
--- @include "queue/schema"
--- @include "queue/sound_type"

local meta = KEYS[1]
local name = ARGV[1]

local base = string.sub(meta, 1, -5)
local row = redis.call('HMGET', meta, 'v', 'clock')
local fault = schema_fault(row[1])
for key, meant in pairs({ schedules = 'hash', ticks = 'zset', owed = 'hash', refills = 'set' }) do
  fault = fault or sound_type(base, key, meant)
end
if fault then return fault end
-- first write: frees (README)
local was = redis.call('HDEL', base .. 'schedules', name)
redis.call('ZREM', base .. 'ticks', name)
redis.call('HDEL', base .. 'owed', name)
redis.call('SREM', base .. 'refills', name)
return { clock(row[2]), was }
