--- A job that waits for others hears of those that are not there: they have ended, or are lost, and it does not know. So
--- it becomes ready, or ends with them, as its terms say.
--- KEYS: meta, guard
--- ARGV: id, first
---   first: place of the first parent that is looked at; 1000 at the most are
--- REPLY: {now, of how many it has heard}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "consumer/notify_opened"

local meta = KEYS[1]
local id = ARGV[1]
local first = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
first = tonumber(first)
if id == '' or not first or first < 0 or first ~= math.floor(first) then
  return redis.error_reply('BADARGS repair_parents: a job, and the place of a parent')
end
failure = sound_fault(base, queue.levels)
if failure then return failure end

local heard
-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
--- @each heard = retell(base, queue, id, first)
notify_opened(base, queue)
return { queue.now, heard or 0 }
