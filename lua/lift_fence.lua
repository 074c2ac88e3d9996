--- What stood before the fence of another shard is gone: this shard waits for it no more, and delivers where that was the
--- last one, unless people have paused it meanwhile.
--- KEYS: meta, guard
--- ARGV: version, source
---   version: of the table, by which the fence was made; source: the number of the other shard
--- REPLY: {now, 1 if it delivers by this, else 0}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "queue/resume"

local meta = KEYS[1]
local version = ARGV[1]
local source = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if not tonumber(version) or not tonumber(source) then
  return redis.error_reply('BADARGS lift_fence takes a version and the number of a shard')
end
failure = sound_fault(base, queue.levels)
if failure then return failure end

local lifted = false
--- @each lifted = lifted(base, version, source)
if lifted then resume_queue(base, queue) end
return { queue.now, lifted and 1 or 0 }
