--- Read how far a stream of jobs is for which another one waits.
--- KEYS: meta, guard
--- ARGV: id
---   id: of the job that waits
--- REPLY: {now, its value, "" where it has ended; its record, or ""; how many of the stream have come, "" where it does
---   not wait}
--- ERRORS: DAMAGED | SCHEMA
--- @include "queue/open"
--- @include "queue/sound_type"
--- @include "result/read"

local meta = KEYS[1]
local id = ARGV[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
failure = sound_type(base, 'deferred', 'hash')
if failure then return failure end
local value = redis.call('HGET', base .. 'jobs', id) or ''
if string.byte(value) == 33 then value = '' end
return { queue.now, value, result_read(base, id) or '', redis.call('HGET', base .. 'deferred', id) or '' }
