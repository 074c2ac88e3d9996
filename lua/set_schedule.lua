--- Make a schedule, or change it: what it enqueues, when, and whether it is paused. What it has done so far is kept.
--- KEYS: meta, guard
--- ARGV: name, version, schedule
---   version: of the schedule as the caller read it, "" = there is none; schedule: JSON, see include/tick/record.lua
--- REPLY: {now, word}: made, changed, or other: there is another version, and nothing was changed
--- ERRORS: BADARGS | CONFLICT | DAMAGED | SCHEMA | what policies refuse
--- @include "queue/joined"
--- @include "queue/sound"
--- @include "queue/schema_stamp"
--- @include "tick/record"
--- @include "tick/looked"
--- @include "tick/watch"
--- @include "enqueue/batch_terms"
--- @hooks timed

local meta = KEYS[1]
local name = ARGV[1]
local version = ARGV[2]
local schedule = ARGV[3]

--- Schedules of one queue.
local SCHEDULES_MOST = 10000

local base = string.sub(meta, 1, -5)
local queue, failure = queue_joined(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
local record = record_parse(schedule)
if not record or name == '' or #name > 200 then
  return redis.error_reply('BADARGS set_schedule: a name and a schedule')
end
failure = sound_fault(base, queue.levels)
if failure then return failure end
local before = redis.call('HGET', base .. 'schedules', name)
local known = record_parse(before)
-- one that cannot be read is made anew
local is = known and string.format('%d', known.version) or ''
if is ~= version then return { queue.now, 'other' } end
if not before and redis.call('HLEN', base .. 'schedules') >= SCHEDULES_MOST then
  return redis.error_reply('CONFLICT schedules: a queue has ' .. SCHEDULES_MOST .. ' at the most')
end
local priorities = tonumber(redis.call('HGET', meta, 'priorities')) or 10
local plan
plan, failure = batch_terms_read(record.terms .. '1', 1, { base = base, now = queue.now, priorities = priorities })
if not plan then return failure end
if plan[1].due > 0 then return redis.error_reply('BADARGS set_schedule: terms with a time of their own') end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
for _, field in ipairs({ 'version', 'after', 'last', 'last_id', 'fired', 'skipped', 'left_out', 'behind', 'conflicts', 'made', 'code', 'app', 'seen',
  'declared' }) do
  record[field] = known and known[field] or nil
end
for _, field in ipairs(RECORD_NUMBERS) do record[field] = record[field] or 0 end
record.made = record.made or queue.now
record.fault, record.waits, record.owed = nil, nil, nil
-- who lets a retired one go on keeps it, whatever code says
if known and known.state == 'retired' and record.state == 'active' then record.code = nil end
if known and known.owed and record.overlap == 'queue' and record.state == 'active' then record.owed = known.owed end
record_write(base, name, record)
looked_from_now(base, queue.now)
schema_stamp(meta)
tick_watch(base, queue)
return { queue.now, known and 'changed' or 'made' }
