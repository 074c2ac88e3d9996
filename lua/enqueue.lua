--- Accept jobs: each gets its position, becomes ready or scheduled, and wakes one consumer or is delivered to it.
--- KEYS: meta, guard
--- ARGV: how, runs, jobs...
---   how: "0" | "1" = deliver the one job to a waiting consumer now or refuse (X-01) | "2" = deliver none directly
---     | "3", "4" = "0", "1" where the queue is there already, or refuse (Q-20) | else what a writer notes of this step
---     so that it may come twice, see include/enqueue/write_log.lua
---   runs: "<priority>,<when>,<max>[:<max crashes>][~<ttl ms>][|g<group>][|k<key>][|h][|c<labels>][|u<how>:<key>],
---   <count>;..." for consecutive jobs; when: "" now,
---   "+<ms>" from now, "@<ms>" at; with a ttl or a group, a queue that has no such policy yet takes
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
if total < 1 or total > 1000 or total ~= math.floor(total) then
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
local special = string.sub(runs, 1, 5) ~= '4,,0,' or tonumber(string.sub(runs, 6)) ~= total or (row[7] and row[7] ~= '10')
--- @each special = defaults(base, special)
if special then
  --- @include "enqueue/batch_terms"
  plan, fault = batch_terms_read(runs, total, { base = base, now = now, priorities = tonumber(row[7]) or 10 })
  if not plan then return fault end
end

--- @if fit
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

local note, noted
if how ~= '0' and how ~= '1' and how ~= '2' then
  --- @include "enqueue/write_log"
  note, fault = write_log_open(base, how)
  if not note then return fault end
  noted = write_log_append
end

local ids, refused, accepted = {}, {}, total
for i = 1, total do ids[i] = ARGV[FIRST + 2 * (i - 1)] end
local live = redis.call('HMGET', base .. 'jobs', unpack(ids))
local ended = redis.call('HMGET', base .. 'ended', unpack(ids))
local older = redis.call('HMGET', base .. 'ended:old', unpack(ids))
local seen = total > 1 and {} or nil
for i = 1, total do
  local id = ids[i]
  if live[i] or ended[i] or older[i] or seen and seen[id] then
    refused[#refused + 1] = i - 1
    ids[i] = false
    accepted = accepted - 1
  elseif seen then
    seen[id] = true
  end
end
if accepted == 0 then
  if note then noted(note, 0, total) end
  return { now, 0, refused, '' }
end

--- @if instead
-- of some the keys are those of other jobs: these are the answer
local uniques = { now = now, over = ARGV.over, timer = timer, paused = paused, index = {}, answered = {}, replaced = {} }
if plan then
  fault = nil
  --- @each fault = instead(base, plan, ids, uniques)
  if fault then return fault end
  accepted = accepted - #uniques.answered / 3
  if uniques.replaced[1] then
    --- @include "queue/sound"
    fault = sound_fault(base, levels)
    if fault then return fault end
    for _, one in ipairs(uniques.replaced) do
      if one.over then ARGV[FIRST + 2 * one.over - 1] = ARGV[FIRST + 2 * one.at - 1] end
    end
  end
  if accepted == 0 then
    if uniques.replaced[1] then
      --- @each replace(base, uniques, ARGV, FIRST)
    end
    if note then noted(note, 0, total) end
    return { now, 0, refused, '', uniques.answered }
  end
end
--- @end
--- @if parents
if plan then
  fault = nil
  --- @each fault = parents(base, plan, ids, refused)
  if fault then return fault end
  if plan[1].waits then how = '2' end
  -- members of a stream may be known by their numbers alone
  accepted = total - #refused
  if accepted == 0 then
    if note then noted(note, 0, total) end
    return { now, 0, refused, '' }
  end
end
--- @end
--- @if able
if total == 1 and plan and waiters[1] then
  waiters = nil
  --- @each waiters = able(base, plan[1])
end
--- @end
-- Direct delivery: nothing waits before the job, and a waiting consumer has credit for it.
local taker, give
local busy = false
--- @if busy
if total == 1 and plan then
  busy = nil
  --- @each busy = busy(base, plan[1], now)
end
--- @end
if total == 1 and how ~= '2' and waiters[1] and not (plan and plan[1].due > 0) and not busy then
  --- @include "deliver/direct"
  taker, give = deliver_direct_consumer(base, now, levels, ranked, waiters, #ARGV[FIRST + 1] + 64), deliver_direct
end
if how == '1' and not taker then
  return redis.error_reply('NOCONSUMER no consumer waits with credit for this job')
end

if waiters[1] and (not taker or taker.name == timer) or row[8] then
  --- @include "enqueue/sound"
  fault = enqueue_sound(base, taker and {} or { unpack(waiters, 1, accepted) },
    { timer = timer, ranked = ranked, browsing = row[8] })
  if fault then return fault end
end

--- @if meets
if plan then
  --- @include "queue/sound_jobs"
  local tags = {}
  for i, run in ipairs(plan) do tags[i] = run.tags end
  fault = sound_jobs(base, tags)
  if fault then return fault end
end
--- @end
--- @if displace
--- @include "enqueue/arrivals"
--- @if weight
request.bytes, request.largest = arrivals_bytes(ids, ARGV, FIRST)
--- @end
local displaced = { victims = {}, gone = {}, ready = plan and arrivals_count(plan, ids) or accepted }
--- @if weight
displaced.bytes = request.bytes
--- @end
--- @each displace(base, plan and arrivals_of(plan, ids) or {}, displaced)
if displaced.victims[1] or displaced.trims then
  --- @include "queue/sound"
  local all = levels .. ',4'
  for _, run in ipairs(plan or {}) do all = all .. ',' .. run.level end
  fault = sound_fault(base, all)
  if fault then return fault end
end
--- @end
--- @if fit
if not fitted then
  request.jobs = accepted
  --- @if weight
  --- @include "enqueue/arrivals"
  request.bytes, request.largest = arrivals_bytes(ids, ARGV, FIRST)
  --- @end
  --- @if displace
  request.victims = displaced and displaced.victims or {}
  request.gone = #request.victims
  --- @end
  --- @each full = fit(base, request)
  if full then return full end
end
--- @end
--- @if overdue
-- a queue that nobody serves is swept by who enqueues; a key of another type is met here, where nothing is changed yet
local overdue
if plan then
  --- @each overdue = overdue(base, now)
end
if overdue then
  --- @include "queue/sound"
  fault = sound_fault(base, levels)
  --- @if meets
  --- @include "queue/sound_swept"
  fault = fault or sound_swept(base, now, {})
  --- @end
  if fault then return fault end
end
--- @end
local position = redis.call('HINCRBY', meta, 'seq', accepted) - accepted
local before, stored, lists, scheduled, ready = position, {}, nil, nil, accepted
if plan then
  --- @include "enqueue/batch_terms"
  lists, scheduled, ready = batch_terms_lay_out(plan, ids, position, now, stored, ARGV, FIRST)
else
  local tail, waiting = string.format(',%d;', now - EPOCH), accepted == total and ids or {}
  for i = 1, total do
    local id = ids[i]
    if id then
      position = position + 1
      stored[#stored + 1] = id
      stored[#stored + 1] = string.format('%d', position) .. tail .. ARGV[FIRST + 2 * i - 1]
      waiting[#stored / 2] = id
    end
  end
  lists = { [4] = waiting }
end

-- what may meet a key of another type comes first, and is undone where it does; all other keys were looked at
local pushed = {}
--- @if marked
if taker and plan and plan.placed then
  local value = stored[2]
  --- @each value = marked(base, plan.placed[1], value)
  stored[2] = value
end
--- @end
if taker then
  fault = give(base, now, taker, timer, stored[1], stored[2])
else
  for level, waiting in pairs(lists) do
    local length = #waiting == 0 or redis.pcall('RPUSH', base .. 'ready:' .. level, unpack(waiting))
    if type(length) == 'table' then
      fault = length
      break
    end
    if #waiting > 0 then pushed[level] = #waiting end
  end
end
if scheduled and not fault then
  --- @include "queue/sound_type"
  fault = sound_type(base, 'scheduled', 'zset')
end
if fault then
  for level, count in pairs(pushed) do redis.call('LTRIM', base .. 'ready:' .. level, 0, -count - 1) end
  if before > 0 then redis.call('HINCRBY', meta, 'seq', -accepted) else redis.call('HDEL', meta, 'seq') end
  --- @include "queue/refused"
  return refused_reply(fault)
end

redis.call('HSET', base .. 'jobs', unpack(stored))
--- @if weigh
local where = taker and 'held' or nil
--- @each weigh(base, now, stored, where)
--- @end
--- @if owned
if plan then
  --- @each owned(base, now, uniques.index, taker)
  if uniques.replaced[1] then
    --- @each replace(base, uniques, ARGV, FIRST)
  end
end
--- @end
--- @each stays(base)
if not row[1] or joins then schema_stamp(meta) end
--- @if entered
if plan and not taker then
  -- before those leave that their parents let go at once
  --- @each entered(base, now, stored)
end
--- @end
--- @if defers
if plan and (plan.deferred or plan.dependants or plan.joined) then
  --- @each defers(base, plan, now)
end
--- @end
if ready > 0 and (plan or levels ~= '4') then
  --- @include "order/levels"
  levels_use(meta, levels, lists)
end
--- @if displace
if displaced.victims[1] then
  --- @include "queue/open"
  --- @include "finish/displaced"
  displaced_end(base, queue_open(base), displaced)
end
--- @end
--- @if shelf
if plan and plan.placed then
  if taker then
    --- @each claim(base, plan.placed[1], nil, taker.name, now)
  else
    local state, others = { now = now }, plan.placed
    --- @if displace
    state.displaced = displaced
    --- @end
    --- @each others = shelf(base, state, others)
    ready = ready - (state.kept_back or 0)
  end
end
--- @end
--- @if trim
if displaced.trims and not taker then
  local left
  --- @each left = trim(base, false)
  ready = math.min(ready, left)
end
--- @end
if waiters[1] and ready > 0 and not taker then
  --- @include "consumer/notify"
  consumer_notify(base, now, ready, timer, ranked)
end
if scheduled then
  --- @include "schedule/add"
  -- after the other consumers were notified: one that is notified now looks at the schedule itself
  schedule_add(base, scheduled)
  if not paused then schedule_add_watch(base, now, scheduled.soonest, timer) end
end
if row[8] then
  --- @include "consumer/browsers"
  browsers_tell(base)
end
if note then noted(note, accepted, total) end
--- @if overdue
if overdue then
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
--- @if instead
do return { now, accepted, refused, taker and taker.name or '', uniques.answered } end
--- @end
return { now, accepted, refused, taker and taker.name or '' }
