--- The next ticks of a schedule, computed by its client: they take the place of those that it has.
--- KEYS: meta, guard
--- ARGV: name, version, ticks, signed
---   version: of the schedule as the caller read it; ticks: JSON array of ms, rising; signed: JSON object,
---   of each tick (as text) what stands before its envelope; empty where jobs are not signed
--- REPLY: {now, 1, or 0 where there is another version: nothing was changed}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/open"
--- @include "queue/sound"
--- @include "tick/record"
--- @include "tick/watch"
--- @hooks timed

local meta = KEYS[1]
local name = ARGV[1]
local version = ARGV[2]
local ticks = ARGV[3]
local signed = ARGV[4]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local readable, nexts = pcall(cjson.decode, ticks)
if not readable or type(nexts) ~= 'table' or #nexts == 0 or not record_rising(nexts) then
  return redis.error_reply('BADARGS refill_schedule: instants that follow each other')
end
failure = sound_fault(base, queue.levels)
if failure then return failure end
local record = record_read(base, name)
if not record or string.format('%d', record.version) ~= version or record.every then return { queue.now, 0 } end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
record.nexts, record.waits = nexts, nil
local parts
readable, parts = pcall(cjson.decode, signed)
record.signed = readable and type(parts) == 'table' and next(parts) and parts or nil
record_write(base, name, record)
tick_watch(base, queue)
return { queue.now, 1 }
