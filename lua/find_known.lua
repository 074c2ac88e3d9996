--- Look which of these ids a queue knows: of jobs that live, or of records. A client asks a shard whose keys have gone
--- to another one, before it enqueues there.
--- KEYS: meta, guard
--- ARGV: ids...
---   ids: at most 1000
--- REPLY: {now, version of the table of shards that the queue goes by, 0: none, {1 if it knows the id, else 0, ...}}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/open"
--- @include "queue/sound_type"

local meta = KEYS[1]
local FIRST = 1

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if #ARGV > 1000 then return redis.error_reply('BADARGS find_known takes at most 1000 ids') end
failure = sound_type(base, 'jobs', 'hash') or sound_type(base, 'ended', 'hash') or sound_type(base, 'ended:old', 'hash')
if failure then return failure end

local found = {}
for i = FIRST, #ARGV do
  local known = 0
  for _, key in ipairs({ 'jobs', 'ended', 'ended:old' }) do
    if known == 0 then known = redis.call('HEXISTS', base .. key, ARGV[i]) end
  end
  found[#found + 1] = known
end
local version
--- @each version = aware(base)
return { queue.now, version or 0, found }
