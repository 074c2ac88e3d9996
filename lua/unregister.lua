--- Take a consumer off the queue; what it still holds goes back uncharged, in order. Call again while some is left.
--- KEYS: meta, guard
--- ARGV: consumer, term
--- REPLY: {now, jobs that it still holds}: 0 = it is gone
--- ERRORS: DAMAGED | GONE | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "consumer/open"
--- @include "queue/sound"
--- @include "consumer/remove"

local meta = KEYS[1]
local consumer = ARGV[1]
local term = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local me
me, failure = consumer_open(base, consumer, term)
if not me then return failure end

failure = sound_fault(base, queue.levels, { consumer })
if failure then return failure end

--- @each ripen(base, queue)
queue.worker = me.worker
local left = consumer_remove_slice(base, queue, consumer, {})
if left == 0 then consumer_remove(base, queue, consumer) end
return { queue.now, left }
