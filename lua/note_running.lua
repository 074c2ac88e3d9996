--- Note which jobs a consumer has been running for a while, in place of what was noted before: should its lease end, it
--- is they that are charged. What is not noted began after that, or not at all (X-24).
--- KEYS: meta, guard
--- ARGV: consumer, running...
---   running: id, when it was acquired, when it began (ms; 0 = not known), ...: at most 1000 jobs
--- REPLY: {now, how many were noted}; ids that are no live jobs are passed over
--- ERRORS: BADARGS | DAMAGED | GONE | SCHEMA
--- @include "queue/open"
--- @include "queue/sound"
--- @include "job/value"

local meta = KEYS[1]
local consumer = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local given = #ARGV - FIRST + 1
if given % 3 ~= 0 or given > 3000 then
  return redis.error_reply('BADARGS note_running takes at most 1000 times an id and two times')
end
if redis.call('HEXISTS', base .. 'consumer:' .. consumer, 'term') == 0 then
  return redis.error_reply('GONE consumer is not registered, or its lease ended')
end
failure = sound_type(base, 'running:' .. consumer, 'hash')
if failure then return failure end
local notes = {}
for i = FIRST, #ARGV, 3 do
  local acquired, started = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  if not acquired or not started or not (math.abs(acquired) < 2 ^ 53 and math.abs(started) < 2 ^ 53) then
    return redis.error_reply('BADARGS note_running: times are numbers of ms')
  end
  local value = redis.call('HGET', base .. 'jobs', ARGV[i])
  if value and string.byte(value) ~= 33 then
    notes[#notes + 1] = ARGV[i]
    -- of this delivery: the job may come back to the same consumer later, and not begin
    notes[#notes + 1] = string.format('%d,%d,%d', value_parse(value).deliveries, acquired, started)
  end
end

redis.call('DEL', base .. 'running:' .. consumer)
for i = 1, #notes, 1000 do
  redis.call('HSET', base .. 'running:' .. consumer, unpack(notes, i, math.min(i + 999, #notes)))
end
return { queue.now, #notes / 2 }
