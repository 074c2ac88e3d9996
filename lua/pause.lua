--- Deliver nothing from now on; jobs are still accepted, and what is held may be settled.
--- KEYS: meta, guard
--- ARGV: none
--- REPLY: {now, 1 if it was running before, else 0}
--- ERRORS: DAMAGED | SCHEMA
--- @include "queue/open"
--- @include "queue/schema_stamp"
--- @include "queue/sound"

local meta = KEYS[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
failure = sound_fault(base, queue.levels)
if failure then return failure end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
schema_stamp(meta)
--- @if halted
local was
--- @each was = halted(base, true)
if was then return { queue.now, was } end
--- @end
redis.call('HSET', meta, 'paused', '1')
return { queue.now, queue.paused and 0 or 1 }
