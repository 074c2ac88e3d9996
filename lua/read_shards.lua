--- Read over which shards a queue is spread.
--- KEYS: meta, guard
--- ARGV: none
--- REPLY: {now, {field, value, ...}}: version; moving: what the newest version changes while it goes on ("open 3",
---   "drain 2"), or ""; of each shard its number: "<state> <weight> <place>"; nothing where the queue has no shards
--- ERRORS: DAMAGED
--- @include "queue/clock"
--- @include "queue/sound_type"

local meta = KEYS[1]

local base = string.sub(meta, 1, -5)
local fault = sound_type(base, 'shards', 'hash')
if fault then return fault end
return { clock(redis.call('HGET', meta, 'clock')), redis.call('HGETALL', base .. 'shards') }
