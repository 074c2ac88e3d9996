--- Tell a shard which version of the table of shards is in force, and what that asks of it. Said again it changes nothing,
--- and answers how far the shard is.
--- KEYS: meta, guard
--- ARGV: of, version, role, sources, fields...
---   of: the queue that is spread; role: "" | "fence": what it has goes before what comes to others from now on |
---   "shut": so it does, and it takes nothing more | "wait": it delivers nothing until what stands before the fences of
---   other shards is gone; sources: their numbers, a space between them; fields: those of the table, as `read_shards`
---   gives them, to be kept here beside it; without them nothing is learned
--- REPLY: {now, word, 1 if something stands before its fence, else 0, 1 if it has no job, else 0, fences that it waits
---   for, 1 if it may know ids of jobs from before keys left it, else 0}; word: new, known, old: it knows a later
---   version, or lacks: it keeps no table of this one, and is to be informed again, with its fields; in these two
---   cases nothing was changed
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/joined"
--- @include "queue/sound"
--- @include "queue/sound_type"
--- @include "queue/schema_stamp"
--- @include "fence/ids"

local meta = KEYS[1]
local of = ARGV[1]
local version = ARGV[2]
local role = ARGV[3]
local sources = ARGV[4]
local FIRST = 5

local base = string.sub(meta, 1, -5)
local queue, failure = queue_joined(base)
if not queue then return failure end
version = tonumber(version)
if not version or not (version >= 1 and version < 2 ^ 53) or of == '' or string.find(sources, '[^%d ]')
  or not (role == '' or role == 'fence' or role == 'shut' or role == 'wait') then
  return redis.error_reply('BADARGS inform_shard takes a queue, a version, a role and numbers of shards')
end
if #ARGV >= FIRST and (#ARGV - FIRST + 1) % 2 ~= 0 then
  return redis.error_reply('BADARGS inform_shard takes pairs of field and value')
end
failure = sound_fault(base, queue.levels) or sound_type(base, 'kept_shards', 'hash')
if failure then return failure end

local fields = {}
for i = FIRST, #ARGV do fields[#fields + 1] = ARGV[i] end
local word
-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
schema_stamp(meta)
--- @each word = informed(base, of, version, role, sources, fields)
local now_ = redis.call('HMGET', meta, 'fence', 'fences', 'marked')
local empty = redis.call('HLEN', base .. 'jobs') <= (tonumber(now_[3]) or 0)
  and redis.call('EXISTS', base .. 'outgoing') == 0
local ids = fence_ids_known(base, queue)
return { queue.now, word or 'old', now_[1] and 1 or 0, empty and 1 or 0, now_[2] or '', ids and 1 or 0 }
