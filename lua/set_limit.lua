--- Say how many jobs a limit allows at a time, or a rate in a time, whatever they say themselves; or forget that. Jobs
--- that wait get the permits that there are now, a page of them in this step.
--- KEYS: meta, guard
--- ARGV: limit, most
---   limit: escaped; "crm" without a key, "crm=acme" of one, "crm=*" for all keys of which nothing is said; most: a number, 0 = none is
---   delivered, of a rate "<count>/<ms>+<burst>"; "" = what the jobs say
--- REPLY: {now, 1 if something was said before, else 0}
--- ERRORS: BADARGS | DAMAGED | SCHEMA | what policies refuse
--- @include "queue/joined"
--- @include "queue/sound"
--- @include "queue/schema_stamp"
--- @include "consumer/notify"
--- @hooks audience

local meta = KEYS[1]
local limit = ARGV[1]
local most = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_joined(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
local count = most
if string.byte(limit) == 64 and most ~= '' then
  local per, burst
  count, per, burst = string.match(most, '^(%d+)/(%d+)%+(%d+)$')
  if not count or math.max(#per, #burst) > 9 or math.min(tonumber(per), tonumber(burst)) < 1 then count = 'no rate' end
end
if not string.find(limit, '^@?[%w%%_-]+=?[%w%%_*-]*$') or #limit > 800 or not string.find(count, '^%d*$') or #count > 9 then
  return redis.error_reply('BADARGS set_limit: an escaped limit, and how many it allows')
end
failure = sound_fault(base, queue.levels)
if failure then return failure end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
schema_stamp(meta)
--- @each ripen(base, queue)
local known = redis.call('HEXISTS', base .. 'limits', limit)
--- @each allow(base, queue, limit, most)
return { queue.now, known }
