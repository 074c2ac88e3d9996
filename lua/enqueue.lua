--- Accept jobs: each gets its position, becomes ready or scheduled, and wakes one consumer or is delivered to it.
--- KEYS: meta, guard
--- ARGV: how, runs, jobs...
---   how: "0" | "1" = deliver the one job to a waiting consumer now or refuse (X-01) | "2" = deliver none directly
---     | "3", "4" = "0", "1" where the queue is there already, or refuse (Q-20) | else what a writer notes of this step
---     so that it may come twice, see include/enqueue/write_log.lua
---   runs: "<priority>,<when>,<max>[:<max crashes>][~<ttl ms>][|g<group>][|k<key>][|h][|c<labels>][|u<how>:<key>],
---   <count>;..." for consecutive jobs; when: "" now,
---   "+<ms>" from now, "@<ms>" at; behind it "-<ms>" of a job that was enqueued so long ago, by way of an outbox: delay
---   and ttl count from then; with a ttl or a group, a queue that has no such policy yet takes
---   it on; at the end of them ">" and the name of a producer that waited for room in a bounded queue
---   jobs: id, envelope, ... at most 1000 jobs, ids distinct or the later one is refused
--- REPLY: {now, accepted, {0-based index of each job refused because its id is known}, consumer it was delivered to or
---   "", where jobs may be unique {0-based index, id of the job that has its key, state of that, ...}}
--- ERRORS: BADARGS | DAMAGED | DUPLICATE: index of a unique job, state and id
---   of the one that has its key | FULL: 1 if producers wait for room, greatest number of jobs, number, of it kept for
---   others, asked for | NOCONSUMER | NOQUEUE | SCHEMA | WRITTEN: the log of the note has another length |
---   PASSED: so has its epoch
--- @hooks audience
--- @include "queue/clock"
--- @include "queue/schema"
--- @include "queue/constants"

local meta = KEYS[1]
local how = ARGV[1]
local runs = ARGV[2]
local FIRST = 3

local base = string.sub(meta, 1, -5)
local total = (#ARGV - FIRST + 1) / 2
if total < 1 or total > 1000 or total % 1 > 0 then
  return redis.error_reply('BADARGS enqueue takes 1 to 1000 pairs of id and envelope')
end

if total > 1 and (how == '1' or how == '4') then
  return redis.error_reply('BADARGS enqueue: only one job at a time is immediate')
end

local row = redis.call('HMGET', meta, 'v', 'clock', 'levels', 'paused', 'timer', 'ranked', 'priorities', 'browsing')
if how == '3' or how == '4' then
  --- @include "queue/there"
  if not queue_there(base) then return redis.error_reply('NOQUEUE there is none of this name') end
  how = how == '3' and '0' or '1'
end
local fault, joins = schema_fault(row[1]), false
if fault then
  --- @include "queue/join"
  joins = string.find(runs, '[~|#]') and join_may(row[1])
  --- @if able
  -- a client that takes the queue for one with selectors says labels of all jobs: that makes it none
  joins = joins and string.find(runs, '|[^c]')
  --- @end
  if not joins then return fault end
end
--- @if closed
fault = nil
--- @each fault = closed()
if fault then return fault end
--- @end
--- @if refers
fault = nil
--- @each fault = refers()
if fault then return fault end
--- @end
--- @if addressed
--- @each runs = addressed(base, runs)
if type(runs) == 'table' then return runs end
--- @end
local now = clock(row[2])
local levels, paused, timer, ranked = row[3] or '', row[4] == '1', row[5], row[6] == '1'

-- what nearly all enqueues are: one run of ordinary jobs
local plan
local special = runs ~= string.format('4,,0,%d', total) or (row[7] and row[7] ~= '10')
--- @each special = defaults(base, special)
if special then
  --- @include "enqueue/batch_terms"
  plan, fault = batch_terms_read(runs, total, { base = base, now = now, priorities = tonumber(row[7]) or 10 })
  if not plan then return fault end
end

--- @if ripen
local first = redis.call('ZRANGE', base .. 'scheduled', '0', '0', 'WITHSCORES')
--- @if fires
--- @each timed(base, first)
--- @end
if first[2] and tonumber(first[2]) <= now then
  --- @include "queue/open"
  -- first write: over its memory limit Redis refuses the whole step
  redis.call('HINCRBY', meta, 'seq', '0')
  --- @stamp
  local its = queue_row(base)
  its[1] = STAMP
  local queue = queue_open(base, its)
  --- @each ripen(base, queue)
  levels, timer = queue.levels, queue.timer
end
--- @end

--- @if fit
--- @if overdue
local overdue
--- @each overdue = overdue(base, now)
if overdue then
  --- @include "queue/open"
  --- @include "room/sweep"
  -- first write: over its memory limit Redis refuses the whole step
  redis.call('HINCRBY', meta, 'seq', '0')
  --- @stamp
  local its = queue_row(base)
  its[1] = STAMP
  local queue = queue_open(base, its)
  sweep_room(base, queue)
  levels, timer = queue.levels, redis.call('HGET', meta, 'timer')
end
--- @end
local request, full, fitted = { jobs = total, gone = 0, runs = runs, now = now, bytes = 0 }, nil, false
--- @end
--- @if grown
local depth
--- @each depth = depth(base, total)
if depth and depth.err then return depth end
--- @end
local waiters = paused and {} or redis.call('ZRANGE', base .. 'interested', '0', WAKE_LAST)
--- @fast
--- @if fit
if total == 1 and how == '0' and not plan then
  --- @each full = fit(base, request)
  fitted = not full
end
if full then
  -- what is known already is no arrival (H-18)
  local id, known = ARGV[FIRST], 0
  for _, key in ipairs({ 'jobs', 'ended', 'ended:old' }) do known = known + redis.call('HEXISTS', base .. key, id) end
  return known > 0 and { now, 0, { 0 }, '' } or full
end
--- @end
if total == 1 and how == '0' and not plan and levels == '4' and not row[8] and not ranked then
  --- @include "enqueue/fast_path"
  local reply = enqueue_fast_path(base, now, waiters[1], timer, ARGV[FIRST], ARGV[FIRST + 1])
  --- @if grown
  if reply then
    --- @each grown(base, now, depth)
  end
  --- @end
  if reply then return reply end
end
--- @end

--- @include "enqueue/known"
--- @include "enqueue/taker"
--- @include "enqueue/admission"
--- @include "enqueue/places"
--- @if instead
--- @include "enqueue/owners"
--- @end
--- @include "enqueue/entry"
--- @include "enqueue/telling"
local step = {
  base = base, now = now, how = how, total = total, plan = plan, arguments = ARGV, first = FIRST,
  levels = levels, paused = paused, timer = timer, ranked = ranked, browsing = row[8], waiters = waiters,
  fresh = not row[1] or joins,
}
--- @if fit
step.request, step.fitted = request, fitted
--- @end
local note
if how ~= '0' and how ~= '1' and how ~= '2' then
  --- @include "enqueue/write_log"
  note, fault = write_log_open(base, how)
  if not note then return fault end
  step.noted = write_log_append
end

known_drop(step)
if step.accepted == 0 then
  if note then step.noted(note, 0, total) end
  return { now, 0, step.refused, '' }
end
--- @if instead
fault = owners_answer(step, ARGV.over)
if fault then return fault end
if step.accepted == 0 then
  owners_replace(step)
  owners_note(step)
  if note then step.noted(note, 0, total) end
  return { now, 0, step.refused, '', step.uniques.answered }
end
--- @end
--- @if parents
if plan then
  fault = nil
  local known = #step.refused
  --- @each fault = parents(base, plan, step.ids, step.refused)
  if fault then return fault end
  if plan[1].waits then step.how = '2' end
  -- members of a stream may be known by their numbers alone
  step.accepted = step.accepted - (#step.refused - known)
  if step.accepted == 0 then
    if note then step.noted(note, 0, total) end
    return { now, 0, step.refused, '' }
  end
end
--- @end
fault = taker_find(step) or admission_fault(step)
if fault then return fault end

places_lay_out(step)
fault = places_take(step)
if fault then return fault end
entry_store(step)
entry_place(step)
telling_all(step)

if note then step.noted(note, step.accepted, total) end
--- @if overdue
if step.overdue then
  --- @include "queue/open"
  --- @each upkeep(base, queue_open(base))
end
--- @end
--- @if fit
if request.used or request.gone > 0 then
  --- @each vacated(base, request)
end
--- @end
--- @if grown
--- @each grown(base, now, depth)
--- @end
local receiver = step.taker and step.taker.name or ''
--- @if instead
owners_note(step)
do return { now, step.accepted, step.refused, receiver, step.uniques.answered } end
--- @end
return { now, step.accepted, step.refused, receiver }
