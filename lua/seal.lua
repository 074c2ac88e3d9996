--- A stream of jobs for which another one waits has ended, with so many of them: what waits becomes ready when they have
--- ended, all of them, and at once where they have. To say it again changes nothing.
--- KEYS: meta, guard
--- ARGV: id, total
---   id: of the job that waits; total: how many the stream had
--- REPLY: now
--- ERRORS: BADARGS | DAMAGED | NOPARENT: "over", and the id of a job that waits no more | SCHEMA | SEALED: how many it
---   has, how many this one had, and the id
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "consumer/notify_opened"

local meta = KEYS[1]
local id = ARGV[1]
local total = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
total = tonumber(total)
if id == '' or not total or total < 0 or total ~= math.floor(total) then
  return redis.error_reply('BADARGS seal: a job, and a number')
end
failure = sound_fault(base, queue.levels)
if failure then return failure end

local sealed
--- @each sealed = seal(base, queue, id, total)
if type(sealed) == 'table' then return sealed end
if not sealed then return redis.error_reply('NOPARENT over ' .. id) end
notify_opened(base, queue)
return queue.now
