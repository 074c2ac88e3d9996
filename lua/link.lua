--- Note in a queue that another one sends its dead letters or expired jobs here, or that it does so no more: a queue
--- that is such a target is not deleted.
--- KEYS: meta, guard
--- ARGV: source, what
---   source: the other queue's name; what: "dead", "expired" or "dead,expired"; "" = nothing any more
--- REPLY: {now, 1 where this queue exists, else 0: nothing is noted}
--- ERRORS: DAMAGED | SCHEMA
--- @include "queue/clock"
--- @include "queue/schema"
--- @include "queue/sound_type"
--- @include "queue/there"

local meta = KEYS[1]
local source = ARGV[1]
local what = ARGV[2]

local base = string.sub(meta, 1, -5)
local row = redis.call('HMGET', meta, 'v', 'clock')
local fault = schema_fault(row[1]) or sound_type(base, 'sources', 'hash')
if fault then return fault end
local there = queue_there(base)
-- first write: frees (README)
if what == '' then
  redis.call('HDEL', base .. 'sources', source)
elseif there then
  redis.call('HDEL', meta, 'oom')
  redis.call('HSET', base .. 'sources', source, what)
end
return { clock(row[2]), there and 1 or 0 }
