--- Note how far jobs are by their own reports, and what they log; who watches them hears of it.
--- KEYS: meta, guard
--- ARGV: consumer, term, reports, items...
---   reports: how many jobs report, 0 to 100; items: of each its id, how often it was delivered, its report (JSON, at
---   most 4000 bytes; "" = none), the token of the attempt (letters and digits), the serial of the first line, how many
---   lines (at most 1000 in all), and these, "<ms>,<level>;<text>", at most 10000 bytes each; then ids of jobs of which
---   an attempt is over, at most 500: of those that have ended the report goes, and lines stay as long as records do
--- REPLY: {now, {ids that this consumer does not hold: of these nothing is noted}}
--- ERRORS: BADARGS | DAMAGED | GONE | SCHEMA
--- @include "queue/open"
--- @include "queue/keep"
--- @include "queue/sound_type"
--- @include "consumer/open"
--- @include "log/lines"
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
local held = base .. 'held:' .. consumer
failure = sound_type(base, 'jobs', 'hash') or sound_type(base, 'consumer:' .. consumer, 'hash')
  or sound_type(base, 'held:' .. consumer, 'list')
local said, at, total = {}, FIRST, 0
reports = tonumber(reports)
local fit = reports and reports >= 0 and reports <= 100 and reports == math.floor(reports)
while fit and #said < reports do
  local one = { id = ARGV[at], delivery = tonumber(ARGV[at + 1]), said = ARGV[at + 2], token = ARGV[at + 3],
    first = tonumber(ARGV[at + 4]), lines = {} }
  local count = tonumber(ARGV[at + 5])
  fit = count and count >= 0 and count == math.floor(count) and at + 5 + count <= #ARGV and one.delivery and one.first
    and #one.said <= 4000 and not string.find(one.token, '%W')
  total = total + (count or 0)
  fit = fit and total <= 1000
  if fit then
    for i = 1, count do
      one.lines[i] = ARGV[at + 5 + i]
      fit = fit and #one.lines[i] <= 10000
    end
    at = at + 6 + count
    said[#said + 1] = one
    failure = failure or sound_type(base, 'progress:' .. one.id, 'hash') or sound_type(base, 'log:' .. one.id, 'list')
  end
end
if not fit or #ARGV > at + 499 then
  return redis.error_reply('BADARGS report: at most 100 jobs, six words each and their lines, and 500 that are over')
end
local me
if not failure then me, failure = consumer_open(base, consumer, term) end
if failure then return failure end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
local strangers = {}
for _, one in ipairs(said) do
  if redis.call('LPOS', held, one.id) then
    if one.said ~= '' then
      local key = base .. 'progress:' .. one.id
      redis.call('HSET', key, 'by', me.name, 'delivery', string.format('%d', one.delivery), 'at',
        string.format('%d', queue.now), 'said', one.said)
      redis.call('PEXPIRE', key, KEPT_MS)
    end
    if #one.lines > 0 then lines_append(base, one.id, one.delivery, one.token, one.first, one.lines) end
    watch_ring(base, one.id)
  else
    strangers[#strangers + 1] = one.id
  end
end
for i = at, #ARGV do
  local id = ARGV[i]
  if redis.call('HEXISTS', base .. 'jobs', id) == 0 then
    redis.call('UNLINK', base .. 'progress:' .. id)
    redis.call('PEXPIRE', base .. 'log:' .. id, string.format('%d', queue_keep(queue)))
  end
  watch_ring(base, id)
end
return { queue.now, strangers }
