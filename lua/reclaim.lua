--- Take the jobs of a dead consumer back at once: those that were running are charged an attempt and a crash, the
--- others nothing. A job that crashed before waits before it is back in its place (X-23).
--- KEYS: meta, guard
--- ARGV: consumer, cause, charged...
---   cause: JSON object that says how it died
---   charged: id, when it was acquired, when it began (ms; 0 = not known), ... of the jobs that were running
--- REPLY: {now, jobs that it still holds, {id, task, cause JSON, ... of jobs that are dead now, for their crashes}}: 0 =
---   it is gone; call again, with all the same, while some is left
--- ERRORS: BADARGS | DAMAGED | GONE | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "consumer/remove"

local meta = KEYS[1]
local consumer = ARGV[1]
local cause = ARGV[2]
local FIRST = 3

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local worker = redis.call('HGET', base .. 'consumer:' .. consumer, 'worker')
if not worker then return redis.error_reply('GONE consumer is not registered, or its lease ended') end

local known, said = pcall(cjson.decode, cause)
if not known or type(said) ~= 'table' or (#ARGV - FIRST + 1) % 3 ~= 0 then
  return redis.error_reply('BADARGS reclaim: the cause is a JSON object, and each id has two times')
end

local charged, turn = {}, 0
for i = FIRST, #ARGV, 3 do
  local acquired, started = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  -- a comparison with nan is false
  if not acquired or not started or not (math.abs(acquired) < 2 ^ 53 and math.abs(started) < 2 ^ 53) then
    return redis.error_reply('BADARGS reclaim: times are numbers of ms')
  end
  turn = turn + 1
  charged[ARGV[i]] = { cause = said, turn = turn, acquired = acquired, started = started }
end
failure = sound_fault(base, queue.levels, { consumer })
if failure then return failure end

--- @each ripen(base, queue)
queue.worker = worker
local left = consumer_remove_slice(base, queue, consumer, charged)
if left == 0 then consumer_remove(base, queue, consumer) end
return { queue.now, left, queue.died or {} }
