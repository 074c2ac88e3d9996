--- Say which consumer owns a group, where groups are sticky; it may be taken from it: the next consumer that takes a job
--- of the group owns it then. What the first one holds stays with it, and goes before the rest of the group.
--- KEYS: meta, guard
--- ARGV: group, bucket, consumer, how
---   group: escaped, as in the names of keys; bucket: a number; consumer: all that it owns; one of them, "" = not
---   how: look | reset
--- REPLY: {now, bucket, consumer, "" where none owns it}: 0 and "" where groups are not sticky
--- ERRORS: BADARGS | DAMAGED | SCHEMA | what policies refuse
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"

local meta = KEYS[1]
local group = ARGV[1]
local bucket = ARGV[2]
local consumer = ARGV[3]
local how = ARGV[4]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
local said = (group ~= '' and 1 or 0) + (bucket ~= '' and 1 or 0) + (consumer ~= '' and 1 or 0)
if said ~= 1 or string.find(group, '[^%w%%_-]') or string.find(bucket, '%D') or #bucket > 6
  or how ~= 'look' and how ~= 'reset' then
  return redis.error_reply('BADARGS group_owner: an escaped group, the number of a bucket or a consumer; look or reset')
end
failure = sound_fault(base, queue.levels)
if failure then return failure end

--- @each ripen(base, queue)
local number, owner = nil, consumer ~= '' and consumer or nil
if not owner then
  --- @each number = bucketed(base, group, bucket)
  if not number then return { queue.now, 0, '' } end
  --- @each owner = owner(base, number)
end
if how == 'reset' then
  --- @each reset(base, queue, number, consumer)
end
return { queue.now, tonumber(number) or 0, owner or '' }
