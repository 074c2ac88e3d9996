--- Say what weight a share has, from its next delivery on, or that of all of which nothing is said; or forget that.
--- KEYS: meta, guard
--- ARGV: share, weight
---   share: escaped; "*": all of which nothing is said; weight: 1 to 1000, of which each delivery costs it its part; "" =
---   that of the others, of which "*" has 1
--- REPLY: {now, 1 if something was said before, else 0}
--- ERRORS: BADARGS | DAMAGED | SCHEMA | what policies refuse
--- @include "queue/joined"
--- @include "queue/sound"
--- @include "queue/schema_stamp"
--- @hooks audience

local meta = KEYS[1]
local share = ARGV[1]
local weight = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_joined(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
local number = tonumber(weight)
if share ~= '*' and (not string.find(share, '^[%w%%_-]+$') or #share > 384)
  or weight ~= '' and (not string.find(weight, '^%d+$') or number < 1 or number > 1000) then
  return redis.error_reply('BADARGS set_share: an escaped share, and a weight from 1 to 1000')
end
failure = sound_fault(base, queue.levels)
if failure then return failure end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
schema_stamp(meta)
--- @each ripen(base, queue)
local known = redis.call('HEXISTS', base .. 'weights', share)
--- @each apportion(base, share, weight)
return { queue.now, known }
