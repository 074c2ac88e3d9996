--- How far the stopping of a job is that was cancelled while it ran.
--- KEYS: meta, guard
--- ARGV: id
--- REPLY: {now, stage}: requested (its consumer is notified), delivered (the code that runs has been interrupted), ended
---   (it runs no more, or its consumer is gone); "" where nobody asked for that, or the record is gone
--- ERRORS: SCHEMA
--- @include "queue/open"
--- @include "stop/record"

local meta = KEYS[1]
local id = ARGV[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local key, _, said = stop_record(base, id)
if not key or not said.by then return { queue.now, '' } end
if redis.call('HEXISTS', base .. 'consumer:' .. said.by, 'term') == 0 then return { queue.now, 'ended' } end
return { queue.now, tostring(said.stop) }
