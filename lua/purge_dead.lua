--- Drop dead letters for good: their records stay until they are forgotten, their envelopes go.
--- KEYS: meta, guard
--- ARGV: ids...
---   ids: at most 250
--- REPLY: {now, how many were dropped}; ids that are not dead are passed over
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "finish/end"

local meta = KEYS[1]
local FIRST = 1

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if #ARGV < 1 or #ARGV > 250 then return redis.error_reply('BADARGS purge_dead takes 1 to 250 ids') end

failure = sound_fault(base, queue.levels)
if failure then return failure end

local ids = {}
for i = FIRST, #ARGV do
  local id = ARGV[i]
  if redis.call('ZREM', base .. 'dead', id) == 1 then ids[#ids + 1] = id end
end
if #ids > 0 then
  redis.call('HDEL', base .. 'causes', unpack(ids))
end
return { queue.now, end_jobs(base, queue, ids, 'P', 'purged') }
