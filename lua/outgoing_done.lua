--- Jobs of the outbox are in their queues, or ends were heard of there: they leave it.
--- KEYS: meta, guard
--- ARGV: members...
---   members: at most 250, as `outgoing_take` gave them
--- REPLY: {now, how many left}; those that had left before are passed over
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/clock"
--- @include "queue/schema"
--- @include "queue/count"
--- @include "queue/sound_type"

local meta = KEYS[1]
local FIRST = 1

local base = string.sub(meta, 1, -5)
local row = redis.call('HMGET', meta, 'v', 'clock')
local fault = schema_fault(row[1])
if fault then return fault end
if #ARGV < 1 or #ARGV > 250 then return redis.error_reply('BADARGS outgoing_done takes 1 to 250 members') end
fault = sound_type(base, 'outgoing', 'zset') or sound_type(base, 'outgoing:jobs', 'hash')
if fault then return fault end

local left, moved = 0, 0
for i = FIRST, #ARGV do
  local found = redis.call('ZREM', base .. 'outgoing', ARGV[i])
  left = left + found
  -- behind the turn of what is no job stands a tabulator
  if string.byte(ARGV[i], 15) ~= 9 then moved = moved + found end
end
redis.call('HDEL', base .. 'outgoing:jobs', unpack(ARGV))
if moved > 0 then count_up(meta, 'moved', moved) end
return { clock(row[2]), left }
