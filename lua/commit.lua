--- Several enqueues, also into other queues, and settles of jobs that one consumer holds, as one step (Q-73): all of
--- them, or none. A job that the
--- consumer does not hold any more refuses the whole step, since others have its work.
--- KEYS: meta, guard
--- ARGV: consumer, term, freed, batch, rows, groups, count, runs, others, items...
---   consumer: "" = nothing is settled; freed, batch, rows, groups: as of settle
---   count: how many jobs are enqueued, 0 to 1000; runs: as of enqueue
---   others: how many jobs go to other queues, 0 to 1000: by way of the outbox
---   items: id, envelope, ... of the jobs to be enqueued; queue, id, terms, envelope, ... of those that go elsewhere; then
---   what is settled, as of settle
--- REPLY: {now, state of the consumer or "", {0-based index of each job refused because its id is known}, consumer that
---   the one new job was delivered to or "", {ids that are not held}, how many of those have ended; where jobs may be
---   unique, as of enqueue}; where some are not held, nothing was done, and the indices say which jobs are known already
--- ERRORS: BADARGS | DAMAGED | DUPLICATE: as of enqueue | FULL: as of enqueue,
---   where nothing is settled | GONE | SCHEMA
--- @include "queue/row"
--- @include "queue/schema"
--- @include "queue/schema_stamp"
--- @include "queue/open"
--- @include "queue/sound"
--- @include "queue/sound_jobs"
--- @include "consumer/open"
--- @include "enqueue/batch_terms"
--- @include "settle/outcomes"
--- @include "held/remove"
--- @include "result/read"
--- @step "enqueue"
--- @step "settle"

local meta = KEYS[1]
local consumer = ARGV[1]
local term = ARGV[2]
local freed = ARGV[3]
local batch = ARGV[4]
local rows = ARGV[5]
local groups = ARGV[6]
local count = ARGV[7]
local runs = ARGV[8]
local others = ARGV[9]
local FIRST = 10

local base = string.sub(meta, 1, -5)
local row, failure = queue_row(base), nil
local queue
local fault, joins = schema_fault(row[1]), false
if fault then
  --- @include "queue/join"
  local policies = string.find(runs, '[~|]')
  --- @if able
  policies = string.find(runs, '|[^c]')
  --- @end
  joins = (policies or others ~= '0') and join_may(row[1])
  if not joins then return fault end
  queue = { now = clock(row[2]), levels = row[3] or '', max = tonumber(row[13]) or 10 }
else
  queue, failure = queue_open(base, row)
  if failure then return failure end
end
count, others = tonumber(count), tonumber(others)
if not count or count < 0 or count > 1000 or count ~= math.floor(count) or not others or others < 0 or others > 1000
  or others ~= math.floor(others) or #ARGV < FIRST - 1 + 2 * count + 4 * others then
  return redis.error_reply('BADARGS commit: from 0 to 1000 jobs here, and as many elsewhere')
end
--- @if closed
if count > 0 then
  --- @each failure = closed()
  if failure then return failure end
end
--- @end
--- @if refers
if count > 0 then
  --- @each failure = refers()
  if failure then return failure end
end
--- @end
--- @if addressed
local whole = runs
if count > 0 then
  --- @each runs = addressed(base, runs)
  if type(runs) == 'table' then return runs end
end
--- @end
local sends = false
--- @if sends
sends = true
--- @end
if others > 0 and not sends then return redis.error_reply('BADARGS commit: without an outbox no job goes elsewhere') end
local SETTLED = FIRST + 2 * count + 4 * others
if not (tonumber(freed) and tonumber(rows)) then
  return redis.error_reply('BADARGS commit: bytes and rows are numbers')
end

local ids, known, levels = {}, {}, queue.levels
for i = 1, count do ids[i] = ARGV[FIRST + 2 * (i - 1)] end
if count > 0 then
  local priorities = redis.call('HGET', meta, 'priorities')
  local plan
  plan, failure = batch_terms_read(runs, count, { base = base, now = queue.now, priorities = tonumber(priorities) or 10 })
  if not plan then return failure end
  local tags = {}
  for i, run in ipairs(plan) do
    levels = levels .. ',' .. run.level
    tags[i] = run.tags
  end
  failure = sound_jobs(base, tags)
  if failure then return failure end
end
-- one of these may meet another type, as nothing after it does
failure = sound_fault(base, levels, { consumer ~= '' and consumer or nil })
if failure then return failure end

local stale, over, state, how = {}, 0, '', '0'
--- @if instead
local ending = {}
--- @end
if consumer == '' then
  if #ARGV >= SETTLED then return redis.error_reply('BADARGS commit: nobody settles these') end
else
  local me, said
  me, failure = consumer_open(base, consumer, term)
  if not me then return failure end
  if me.browses then return redis.error_reply('BADARGS commit: a browser holds nothing') end
  said, failure = outcomes_read(base, queue, me, groups, ARGV, SETTLED)
  if not said then return failure end
  -- what comes back goes before what is new
  if said.fates then how = '2' end
  local mine = said.total > 0 and held_remove_find(base, consumer, said.ids) or {}
  for i = 1, said.total do
    local id, fate = said.ids[i], said.fates and said.fates[i]
    if not mine[id] or fate and fate.earlier then
      stale[#stale + 1] = id
      if result_read(base, id) then over = over + 1 end
    end
    mine[id] = nil
    --- @if instead
    ending[id] = not fate and 'done' or fate and fate.verb == 'reject' and 'dead' or nil
    --- @end
  end
  if said.total > 0 then
    failure = sound_jobs(base, redis.call('HMGET', base .. 'jobs', unpack(said.ids)))
    if failure then return failure end
  end
end
if #stale > 0 then
  for i, id in ipairs(ids) do
    if redis.call('HEXISTS', base .. 'jobs', id) == 1 or result_read(base, id) then known[#known + 1] = i - 1 end
  end
  return { queue.now, '', known, '', stale, over }
end

-- an enqueue that is refused has changed nothing, and nothing refuses the settle any more
local taker = ''
--- @if instead
local answered = {}
--- @end
if joins then schema_stamp(meta) end
if count > 0 then
  local arguments = { how, runs }
  --- @if addressed
  arguments[2] = whole
  --- @end
  --- @if fit
  -- what follows a job that is done must not keep it from being settled, however full the queue is
  if consumer ~= '' then arguments[2] = arguments[2] .. '>!' end
  --- @end
  for i = FIRST, FIRST - 1 + 2 * count do arguments[#arguments + 1] = ARGV[i] end
  --- @if instead
  -- what is settled for good in this step has no keys any more
  arguments.over = ending
  --- @end
  local stored = enqueue_step(KEYS, arguments)
  if stored.err then
    -- a queue that takes on a policy with this step does not, then
    if joins and row[1] then redis.call('HSET', meta, 'v', row[1]) elseif joins then redis.call('HDEL', meta, 'v', 'about') end
    return stored
  end
  known, taker = stored[3], stored[4]
  --- @if instead
  answered = stored[5]
  --- @end
end
--- @if sends
if others > 0 then
  --- @include "outgoing/add"
  local entries = {}
  for at = FIRST + 2 * count, SETTLED - 1, 4 do
    entries[#entries + 1] = { target = ARGV[at], id = ARGV[at + 1], terms = ARGV[at + 2], at = queue.now,
      envelope = ARGV[at + 3] }
  end
  outgoing_add(base, entries)
  --- @each stays(base)
end
--- @end
if consumer ~= '' then
  local arguments = { consumer, term, '-1', '0', freed, batch, rows, groups }
  for i = SETTLED, #ARGV do arguments[#arguments + 1] = ARGV[i] end
  local settled = settle_step(KEYS, arguments)
  if settled.err then return settled end
  state = settled[2]
end
--- @if instead
do return { queue.now, state, known, taker, {}, 0, answered } end
--- @end
return { queue.now, state, known, taker, {}, 0 }
