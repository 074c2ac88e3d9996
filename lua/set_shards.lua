--- Change the table of a queue's shards, where nobody else has changed it meanwhile.
--- KEYS: meta, guard
--- ARGV: before, fields...
---   before: the version that it is to have still, "0": none; fields: field, value, ... as `read_shards` gives them
--- REPLY: {now, version, 1 if it was changed, else 0}
--- ERRORS: BADARGS | CONFLICT: the queue has jobs or consumers of its own | DAMAGED | SCHEMA
--- @include "queue/joined"
--- @include "queue/sound_type"
--- @include "queue/schema_stamp"

local meta = KEYS[1]
local before = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local queue, failure = queue_joined(base)
if not queue then return failure end
before = tonumber(before)
if not before or #ARGV < FIRST + 1 or (#ARGV - FIRST + 1) % 2 ~= 0 then
  return redis.error_reply('BADARGS set_shards takes a version, and pairs of field and value')
end
failure = sound_type(base, 'shards', 'hash') or sound_type(base, 'consumers', 'zset')
if failure then return failure end
local fields, answer = {}, nil
for i = FIRST, #ARGV do fields[#fields + 1] = ARGV[i] end
--- @each answer = tabled(base, before, fields)
if not answer then return redis.error_reply('BADARGS set_shards: no table is asked of this kind of queue') end
if answer.err then return answer end
if answer[2] == 1 then schema_stamp(meta) end
return { queue.now, answer[1], answer[2] }
