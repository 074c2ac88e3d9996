--- Count again what is kept for producers that waited for room in a bounded queue, and drop what belongs to none; and how
--- many bytes wait, where a limit counts them.
--- KEYS: meta, guard
--- ARGV: none
--- REPLY: {now, how much was changed}
--- ERRORS: DAMAGED | SCHEMA
--- @include "queue/open"
--- @include "queue/sound"

local meta = KEYS[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
failure = sound_fault(base, queue.levels)
if failure then return failure end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
local changed
--- @each changed = recount(base, queue, changed)
local bounded = false
--- @if room
bounded = true
--- @end
if not bounded then
  -- a queue that nothing bounds: nobody waits there
  changed = (changed or 0) + redis.call('DEL', base .. 'producers', base .. 'grants', base .. 'wishes')
    + redis.call('HDEL', meta, 'granted', 'granted_bytes')
end
return { queue.now, changed }
