--- Enqueue the job of a schedule now, whatever its ticks and the job before are.
--- KEYS: meta, guard
--- ARGV: name, at, signed
---   at: the tick that its id says, ms, "" = now; signed: what stands before the envelope, "" where jobs are not signed
--- REPLY: {now, id, enqueued, state}: id "" where there is no such schedule; enqueued 0 where this tick had its job
---   already, and where another job, of that id and in that state, has its unique key
--- ERRORS: BADARGS | DAMAGED | DUPLICATE: as of enqueue | SCHEMA | what policies refuse
--- @include "queue/open"
--- @include "queue/sound"
--- @include "tick/record"
--- @include "tick/put"
--- @hooks timed

local meta = KEYS[1]
local name = ARGV[1]
local at = ARGV[2]
local signed = ARGV[3]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local fault
--- @if refers
--- @each fault = refers()
if fault then return fault end
--- @end
--- @if closed
--- @each fault = closed()
if fault then return fault end
--- @end
local tick = at == '' and queue.now or tonumber(at)
if not tick or not record_rising({ tick }) then return redis.error_reply('BADARGS run_schedule: at is a time in ms') end
failure = sound_fault(base, queue.levels)
if failure then return failure end
--- @each ripen(base, queue)
local record = record_read(base, name)
if not record then return { queue.now, '', 0, '' } end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
local id, due = put_tick(base, queue, name, record, tick, true, signed)
if not id and due then return due.error or { queue.now, due.id, 0, due.state } end
record_write(base, name, record)
if id and not queue.paused then schedule_add_watch(base, queue.now, due, queue.timer) end
if not id and record.fault then return redis.error_reply('BADARGS run_schedule: ' .. record.fault) end
return { queue.now, name .. '@' .. string.format('%d', tick), id and 1 or 0, '' }
