--- Jobs of other queues have ended for which jobs of this one wait: these hear of it, become ready, or end with it. What
--- is said twice counts once.
--- KEYS: meta, guard
--- ARGV: items...
---   items: job, ends, ... of at most 100 jobs; ends: JSON, a list of texts, of each that has ended its place among those
---     that the job waits for, its id, its state, "1" where it may live again, and what it left: a result, or a cause
--- REPLY: {now, how many of the jobs wait, how many jobs and words of this queue are on their way to others}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "consumer/notify_opened"

local meta = KEYS[1]
local FIRST = 1

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if #ARGV < 2 or #ARGV > 200 or #ARGV % 2 > 0 then
  return redis.error_reply('BADARGS join: 1 to 100 jobs, and of each what has ended')
end
failure = sound_fault(base, queue.levels)
if failure then return failure end

local items, heard, outgoing = {}, nil, 0
for i = FIRST, #ARGV do items[#items + 1] = ARGV[i] end
-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
--- @each heard = heard(base, queue, items)
notify_opened(base, queue)
--- @if sends
local sends
--- @each sends = sends(base, queue.now)
outgoing = sends or 0
--- @end
return { queue.now, heard or 0, outgoing }
