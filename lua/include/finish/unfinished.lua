--- @include "queue/count"
--- @include "job/value"
--- @include "order/reinsert"
--- @include "result/records"
--- @include "history/lines"
--- @include "finish/attempt"
--- @include "finish/dead_letter"
--- @include "finish/errors"
--- @include "schedule/add"
--- @include "consumer/browsers"
--- @hooks eligible
--- @hooks returned
--- @hooks refund

--- Jobs that a consumer held and that did not end, off its list by now: each goes back to its place, to the tail, into
--- the schedule, or to the dead letters. One way for retry, reject, release and crash.

--- The jobs of these values, to be read before anything is written.
local function unfinished_read(base, ids)
  local jobs = {}
  if #ids == 0 then return jobs end
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
    if value then
      local job = value_parse(value)
      job.id = ids[i]
      jobs[#jobs + 1] = job
    end
  end
  return jobs
end

--- What is gathered of several: {base=, queue=, consumer=, worker=, ...}.
local function unfinished_open(base, queue, consumer, worker)
  local batch = { base = base, queue = queue, consumer = consumer, worker = worker, ready = 0, stored = {},
    returned = {}, scheduled = {}, records = {}, lines = {}, retried = 0, rejected = 0, released = 0 }
  --- @if entered
  batch.waits = {}
  --- @end
  --- @if weigh
  batch.weighed = { ready = {}, scheduled = {} }
  --- @end
  --- @if dropped
  batch.dropped = {}
  --- @end
  --- @if returned
  batch.displaced = {}
  --- @end
  --- @if pass
  batch.gone = {}
  --- @end
  --- @if shelf
  batch.moved, batch.gone = {}, {}
  --- @end
  --- @if delayed
  batch.delayed = {}
  --- @end
  --- @if refund
  batch.refunded = {}
  --- @end
  return batch
end

--- It lives on: `place` = old, head, tail, aside, or park: nobody here knows its task. `delay`: ms that it waits.
--- `keeps`: its place is the old one also after that.
local function unfinished_live(batch, job, place, delay, keeps)
  local base, queue, id, waits = batch.base, batch.queue, job.id, true
  if place == 'tail' and delay <= 0 then
    job.position, job.due = redis.call('HINCRBY', base .. 'meta', 'seq', 1), 0
    count_up(base .. 'meta', 'tailed', 1)
    local ordinary = true
    --- @if shelf
    batch.moved[#batch.moved + 1] = job
    job.again, ordinary = true, false
    --- @end
    if ordinary then
      redis.call('RPUSH', base .. 'ready:' .. job.level, id)
      batch.ready = batch.ready + 1
    end
    browsers_tell(base)
  elseif delay > 0 then
    waits = false
    local due = queue.now + math.ceil(delay)
    if keeps or place == 'tail' then
      redis.call('HSET', base .. 'returns_to', id, place == 'aside' and 'old' or place)
    end
    if not keeps then job.due = due end
    --- @if delayed
    batch.delayed[#batch.delayed + 1] = job
    --- @end
    --- @if pass
    if place == 'tail' then
      batch.gone[#batch.gone + 1] = job
      job.again = true
    end
    --- @end
    batch.scheduled[#batch.scheduled + 1] = { due = due, level = job.level, position = job.position, id = id }
    batch.soonest = math.min(batch.soonest or due, due)
  else
    batch.returned[#batch.returned + 1] = job
  end
  --- @each kept(base, job)
  batch.stored[#batch.stored + 1] = id
  batch.stored[#batch.stored + 1] = value_header(job) .. job.envelope
  --- @if weigh
  local weighed = batch.weighed[waits and 'ready' or 'scheduled']
  weighed[#weighed + 1] = id
  weighed[#weighed + 1] = batch.stored[#batch.stored]
  --- @end
  --- @if entered
  if waits then
    batch.waits[#batch.waits + 1] = id
    batch.waits[#batch.waits + 1] = batch.stored[#batch.stored]
  end
  --- @end
end

--- One job's fate. `verb` = retry, reject, release or crash. `counts`: it was an attempt. `error_`: what went wrong,
--- JSON, "" where nothing did; of a crash a table. `place`, `delay`: see `unfinished_live`. `turn`, `acquired`,
--- `started`: of a crash.
local function unfinished_add(batch, job, fate)
  local queue, verb, error_ = batch.queue, fate.verb, fate.error_
  local crash, counts, last, outcome = verb == 'crash', fate.counts, verb == 'reject', nil
  --- @if refuse
  if fate.cause then last, error_, outcome = true, fate.cause, 'dead' end
  --- @end
  if job.damaged and not last then
    last, error_, outcome = true, dead_letter_undecodable(queue.now), 'dead'
  elseif counts and not last then
    last = attempt_last(batch, job, crash)
    outcome = last and 'dead' or crash and 'crash' or nil
    if crash then
      error_.attempt, error_.crash = job.attempts + 1, job.crashes + 1
      error_ = cjson.encode(error_)
    end
  end
  if outcome then
    -- a row that the worker did not write shows the job as it was before this attempt
    batch.lines[#batch.lines + 1] = history_lines_row(job.id, job, outcome, queue.now, batch.worker, error_, fate)
  end
  job.deliveries = job.deliveries + 1
  if last or counts then job.attempts = job.attempts + 1 end
  if crash and not job.damaged then job.crashes = job.crashes + 1 end
  if last then
    batch.records[#batch.records + 1] = job.id
    batch.records[#batch.records + 1] = dead_letter_store(batch.base, queue.now, job, error_)
    if crash and not job.damaged and queue.died then
      for _, said in ipairs({ job.id, value_task(job.envelope), error_ }) do queue.died[#queue.died + 1] = said end
    end
    --- @if pass
    batch.gone[#batch.gone + 1] = job
    --- @end
    if verb == 'retry' or verb == 'reject' then batch.rejected = batch.rejected + 1 end
    return
  end
  local aside = fate.place == 'park' or fate.place == 'aside'
  --- @if refund
  -- it did not begin
  if not counts and (verb == 'release' or aside) then batch.refunded[#batch.refunded + 1] = job end
  --- @end
  --- @if eligible
  local over
  --- @each over = eligible(value_header(job), queue.now)
  if over then
    if not aside and (counts or verb == 'release') then errors_note(batch.base, job.id, error_) end
    batch.dropped[#batch.dropped + 1] = job.id
    batch.dropped[#batch.dropped + 1] = value_header(job) .. job.envelope
    return
  end
  --- @end
  --- @if returned
  local displaced
  --- @each displaced = returned(batch.base, job)
  if displaced then
    batch.displaced[#batch.displaced + 1] = job.id
    batch.records[#batch.records + 1] = job.id
    batch.records[#batch.records + 1] = string.format('R%d:', queue.now)
    batch.lines[#batch.lines + 1] = history_lines_row(job.id, job, displaced, queue.now, batch.worker)
    return
  end
  --- @end
  if fate.place == 'park' then
    redis.call('HSET', batch.base .. 'parked', job.id, error_)
  elseif not aside and (counts or verb == 'release') then
    errors_note(batch.base, job.id, error_)
  end
  local delay = crash and attempt_crash_delay(job, fate.turn) or fate.delay or 0
  unfinished_live(batch, job, fate.place or 'old', delay, crash or aside)
  -- what is retried uncounted (a snooze, a task that nobody here knows) has not failed
  if verb == 'retry' and counts then
    batch.retried = batch.retried + 1
  else
    batch.released = batch.released + 1
  end
end

--- Write what was gathered, but for the rows of history in `batch.lines`. Returns how many became ready again;
--- `queue.watched`: a consumer may have been notified, so that it watches the schedule.
local function unfinished_close(batch)
  local base, queue = batch.base, batch.queue
  if #batch.stored > 0 then redis.call('HSET', base .. 'jobs', unpack(batch.stored)) end
  for _, word in ipairs({ 'retried', 'rejected', 'released' }) do
    if batch[word] > 0 then count_up(base .. 'meta', word, batch[word]) end
  end
  if #batch.returned > 0 then reinsert_jobs(base, queue, batch.returned) end
  --- @each entered(base, queue.now, batch.waits)
  --- @if weigh
  for where, stored in pairs(batch.weighed) do
    --- @each weigh(base, queue.now, stored, where)
  end
  --- @end
  if batch.soonest then
    schedule_add(base, batch.scheduled)
    queue.quiet = false
    if not queue.paused then
      schedule_add_watch(base, queue.now, batch.soonest, queue.timer)
      queue.timer = redis.call('HGET', base .. 'meta', 'timer')
      queue.watched = true
    end
  end
  records_write(base, queue, batch.records)
  --- @if dropped
  if #batch.dropped > 0 then
    --- @if pass
    local opened = queue.opened
    queue.opened = 0
    --- @end
    --- @each dropped(base, queue, batch.dropped, { lines = batch.lines, taker = batch.consumer })
    --- @if pass
    batch.ready = batch.ready + queue.opened
    queue.opened = opened
    --- @end
  end
  --- @end
  --- @if returned
  if #batch.displaced > 0 then
    --- @each left(base, batch.displaced)
    redis.call('HDEL', base .. 'jobs', unpack(batch.displaced))
    redis.call('HDEL', base .. 'errors', unpack(batch.displaced))
    count_up(base .. 'meta', 'displaced', #batch.displaced)
  end
  --- @end
  local ready = batch.ready + #batch.returned
  --- @if pass
  -- where a policy has places of its own, it hears of them there
  if not batch.moved then
    --- @each pass(base, queue, batch.gone)
  end
  --- @end
  --- @if delayed
  if #batch.delayed > 0 then
    local opened = queue.opened
    queue.opened = 0
    --- @each delayed(base, queue, batch.delayed)
    ready = ready + queue.opened
    queue.opened = opened
  end
  --- @end
  --- @if shelf
  --- @include "finish/moved"
  ready = ready + moved_place(base, queue, batch.moved, batch.gone)
  --- @end
  --- @if refund
  --- @each refund(base, batch.refunded)
  --- @end
  return ready
end
