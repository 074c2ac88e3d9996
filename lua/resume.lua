--- Deliver again; as many waiting consumers are notified as there is work for (H-16).
--- KEYS: meta, guard
--- ARGV: none
--- REPLY: {now, 1 if it was paused before, else 0}
--- ERRORS: DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "queue/resume"

local meta = KEYS[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
if not queue.paused then return { queue.now, 0 } end
failure = sound_fault(base, queue.levels)
if failure then return failure end

--- @if halted
local was
--- @each was = halted(base, false)
if was then return { queue.now, was } end
--- @end
--- @each ripen(base, queue)
resume_queue(base, queue)
return { queue.now, 1 }
