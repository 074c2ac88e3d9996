--- What became of a job, or a promise that its record will be put into its result list.
--- KEYS: meta, guard
--- ARGV: id, wait
---   wait: "1" = the caller takes what comes from the result list, by its next command: the record of an ended job is
---     there then, and an empty text where the job is not known
--- REPLY: {now, state, record}; state: ended (with record), unknown; or with wait "live"; else {now, state, "", due,
---   paused, consumers, alive, holder, until, began, attempts, error}; state: ready, scheduled, parked, held; due: ms or
---   "0"; paused: 1 or 0; consumers: that acquire; alive: those of them whose leases have not ended; holder: who has it,
---   else ""; until: the end of its lease, ms; began: ms, where it is noted that it runs, else 0; attempts: that failed;
---   error: of the last one, JSON, else ""
--- ERRORS: SCHEMA
--- @include "queue/clock"
--- @include "queue/schema"

local meta = KEYS[1]
local id = ARGV[1]
local wait = ARGV[2]

local base = string.sub(meta, 1, -5)
local row = redis.call('HMGET', meta, 'v', 'clock')
local fault = schema_fault(row[1])
if fault then return fault end
--- @if refers
--- @each fault = refers()
if fault then return fault end
--- @end
local now = clock(row[2])

local list = base .. 'result:' .. id
local value = redis.call('HGET', base .. 'jobs', id)
--- @if ended
local over
if value then
  --- @each over = ended(base, id, value, now)
end
if over and wait ~= '1' then return { now, 'ended', over } end
if over then
  --- @include "queue/open"
  --- @include "queue/sound"
  local queue = queue_open(base)
  fault = sound_fault(base, queue.levels)
  --- @if meets
  --- @include "queue/sound_swept"
  fault = fault or sound_swept(base, queue.now, {})
  --- @end
  if fault then return fault end
  --- @each upkeep(base, queue)
  value = redis.call('HGET', base .. 'jobs', id)
end
--- @end
local live = value and string.byte(value) ~= 33 and not redis.call('ZSCORE', base .. 'dead', id)
if live and wait == '1' then
  -- first write: frees (README), and finds out whether the next one can be done; of no job, since what a watcher noted
  -- of this one stays
  redis.call('HDEL', base .. 'awaited', '')
  -- a list that an earlier job of this id left behind is no answer
  redis.call('DEL', list)
  redis.call('HSETNX', base .. 'awaited', id, '1')
  --- @each stays(base)
  return { now, 'live', '' }
end
if not live then
  --- @include "result/read"
  --- @include "result/waiters"
  local listed = redis.call('LINDEX', list, '0')
  local record = listed and listed ~= '' and listed or result_read(base, id)
  local cause = not record and redis.call('HGET', base .. 'causes', id)
  if cause then record = string.format('F%d:', redis.call('ZSCORE', base .. 'dead', id) or now) .. cause end
  if wait == '1' and (not listed or listed == '') then
    redis.call('DEL', list)
    waiters_tell(base, id, record or '')
  end
  return { now, record and 'ended' or 'unknown', record or '' }
end

--- @include "job/value"
--- @include "schedule/member"
--- @include "held/scan"
--- @include "consumer/serving"
local state, holder, until_, began = 'ready', '', '0', 0
local job = value_parse(value)
local due = redis.call('ZSCORE', base .. 'scheduled', schedule_member(job, id))
if due then
  state = redis.call('HEXISTS', base .. 'parked', id) == 1 and 'parked' or 'scheduled'
else
  --- @if awaits
  local parents
  job.id = id
  --- @each parents = awaits(base, job)
  if parents then state = 'deferred' end
  --- @end
  holder = held_scan_holder(base, id) or ''
  if holder ~= '' then
    state = 'held'
    until_ = redis.call('ZSCORE', base .. 'consumers', holder) or '0'
    local note = redis.call('HGET', base .. 'running:' .. holder, id) or ''
    local delivery, started = string.match(note, '^(%d+),%d+,(%d+)$')
    began = tonumber(delivery) == job.deliveries and tonumber(started) or 0
  end
end
local errors = redis.call('HGET', base .. 'errors', id) or ''
local paused = redis.call('HGET', meta, 'paused') == '1' and 1 or 0
local consumers, alive = consumer_serving(base, now)
return { now, state, '', due or '0', paused, consumers, alive, holder, until_, began, job.attempts,
  string.match(errors, '[^\n]*$') }
