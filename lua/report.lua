--- Note how far jobs are by their own reports, and tell who watches them.
--- KEYS: meta, guard
--- ARGV: consumer, term, reports, items...
---   reports: how many jobs report, 0 to 100; items: id, how often it was delivered, its report (JSON, at most 4000
---   bytes) of each, then ids of jobs of which an attempt is over, at most 500: of those that have ended nothing is kept
--- REPLY: {now, {ids that this consumer does not hold: of these nothing is noted}}
--- ERRORS: BADARGS | DAMAGED | GONE | SCHEMA
--- @include "queue/open"
--- @include "queue/sound_type"
--- @include "consumer/open"
--- @include "watch/ring"

local meta = KEYS[1]
local consumer = ARGV[1]
local term = ARGV[2]
local reports = ARGV[3]
local FIRST = 4

-- of a job that says no more: longer than a process that reports is silent
local KEPT_MS = '86400000'

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
reports = tonumber(reports)
local over = reports and FIRST + 3 * reports
if not reports or reports < 0 or reports > 100 or reports ~= math.floor(reports) or #ARGV < over - 1
  or #ARGV > over + 499 then
  return redis.error_reply('BADARGS report: at most 100 jobs, three words each, and 500 that are over')
end
local held = base .. 'held:' .. consumer
failure = sound_type(base, 'jobs', 'hash') or sound_type(base, 'consumer:' .. consumer, 'hash')
  or sound_type(base, 'held:' .. consumer, 'list')
for i = FIRST, over - 1, 3 do
  if #ARGV[i + 2] > 4000 or not tonumber(ARGV[i + 1]) then
    return redis.error_reply('BADARGS report: a number of deliveries, and at most 4000 bytes')
  end
  failure = failure or sound_type(base, 'progress:' .. ARGV[i], 'hash')
end
local me
if not failure then me, failure = consumer_open(base, consumer, term) end
if failure then return failure end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
local strangers = {}
for i = FIRST, over - 1, 3 do
  local id = ARGV[i]
  if redis.call('LPOS', held, id) then
    local key = base .. 'progress:' .. id
    redis.call('HSET', key, 'by', me.name, 'delivery', ARGV[i + 1], 'at', string.format('%d', queue.now), 'said',
      ARGV[i + 2])
    redis.call('PEXPIRE', key, KEPT_MS)
    watch_ring(base, id)
  else
    strangers[#strangers + 1] = id
  end
end
for i = over, #ARGV do
  if redis.call('HEXISTS', base .. 'jobs', ARGV[i]) == 0 then redis.call('UNLINK', base .. 'progress:' .. ARGV[i]) end
  watch_ring(base, ARGV[i])
end
return { queue.now, strangers }
