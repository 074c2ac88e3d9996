--- Jobs that wait, or are dead, leave for another queue because people move them (Q-69, A-38): into the outbox, from
--- which they are enqueued there once. What a consumer holds stays with it. Each is a row in history, and its record
--- says where it went.
--- KEYS: meta, guard
--- ARGV: target, left, items...
---   target: the other queue's name; left: ms, the departure, when the terms were made: with it the job may come back while its record
---   lasts
---   items: id, digest, terms, envelope, ... of at most 50 jobs: the SHA-1, in hex, of its value as the caller has read
---   it; the terms and the envelope with which it is enqueued there
--- REPLY: {now, {what became of each, ...}}: moved, or why it is not: held, ended, unknown, damaged, other = its value is
---   another one by now; deferred, waited, results = of a workflow
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/row"
--- @include "queue/schema"
--- @include "queue/schema_stamp"
--- @include "queue/join"
--- @include "queue/open"
--- @include "queue/sound"
--- @include "queue/count"
--- @include "finish/leave"
--- @include "outgoing/add"
--- @include "result/records"
--- @include "history/lines"
--- @include "consumer/wait_for_bytes"
--- @hooks left

local meta = KEYS[1]
local target = ARGV[1]
local left = ARGV[2]
local FIRST = 3

local base = string.sub(meta, 1, -5)
local row = queue_row(base)
local fault, joins = schema_fault(row[1]), false
if fault then
  joins = join_may(row[1])
  if not joins then return fault end
end
local count = (#ARGV - FIRST + 1) / 4
if count < 1 or count > 50 or count ~= math.floor(count) or target == '' then
  return redis.error_reply('BADARGS move takes a queue and 1 to 50 jobs, each with a digest, terms and an envelope')
end
if not string.find(left, '^%d+$') or #left > 15 then
  return redis.error_reply('BADARGS move: the departure is a number of ms')
end
local sends = false
--- @if sends
sends = true
--- @end
if not sends then return redis.error_reply('BADARGS move: without an outbox no job goes elsewhere') end
fault = sound_fault(base, row[3] or '')
if fault then return fault end
--- @if ripen
do
  -- where the queue takes on the outbox it is of that kind from here on
  --- @stamp
  row[1] = STAMP
  local queue = queue_open(base, row)
  --- @each ripen(base, queue)
end
--- @end

-- what moves is known before anything is written: a queue of which nothing moves does not take on the outbox
local answers, chosen, seen = {}, {}, {}
for i = 1, count do
  local at = FIRST + 4 * (i - 1)
  local job, why = leave_find(base, ARGV[at])
  if job and (seen[job.id] or redis.sha1hex(job.value) ~= ARGV[at + 1]) then why = 'other' end
  --- @if tied
  if job and not why then
    --- @each why = tied(base, job)
  end
  --- @end
  answers[i] = why or 'moved'
  if not why then
    seen[job.id] = true
    job.index, job.terms, job.there = i, ARGV[at + 2], ARGV[at + 3]
    chosen[#chosen + 1] = job
  end
end
if #chosen == 0 then return { clock(row[2]), answers } end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
if joins then schema_stamp(meta) end
local queue = queue_open(base)
local gone, ids, entries, records, lines = {}, {}, {}, {}, {}
local said = cjson.encode({ kind = 'moved', to = target })
local record = string.format('M%d:{"to":%s,"left":%s}', queue.now, cjson.encode(target), left)
for _, job in ipairs(chosen) do
  if leave_place(base, queue, job) then
    redis.call('HDEL', base .. 'jobs', job.id)
    gone[#gone + 1], ids[#ids + 1] = job, job.id
    entries[#entries + 1] = { target = target, id = job.id, terms = job.terms, at = tonumber(left), envelope = job.there }
    records[#records + 1] = job.id
    records[#records + 1] = record
    lines[#lines + 1] = history_lines_row(job.id, job, 'moved', queue.now, '', said)
  else
    answers[job.index] = 'damaged'
  end
end
if #ids == 0 then return { queue.now, answers } end
redis.call('HDEL', base .. 'errors', unpack(ids))
if queue.marks then count_up(meta, 'marked', queue.marks) end
--- @each left(base, ids)
outgoing_add(base, entries)
records_write(base, queue, records)
history_lines_write(base, queue.history_max, lines)
wait_for_bytes_over(base, queue.now, ids)
--- @if pass
--- @include "consumer/notify_opened"
--- @each pass(base, queue, gone)
notify_opened(base, queue)
--- @end
--- @each vacated(base, { now = queue.now })
--- @each stays(base)
return { queue.now, answers }
