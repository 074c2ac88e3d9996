--- Jobs that wait become dead letters because people say so (A-38), here or in the queue to which dead letters go. What a
--- consumer holds stays with it.
--- KEYS: meta, guard
--- ARGV: message, ids...
---   message: why, for people; "" = nothing is said; ids: at most 50
--- REPLY: {now, {what became of each, ...}}: rejected, or why it is not: held, dead, ended, unknown, damaged
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "queue/count"
--- @include "finish/leave"
--- @include "finish/dead_letter"
--- @include "result/records"
--- @include "history/lines"
--- @include "consumer/wait_for_bytes"
--- @hooks left

local meta = KEYS[1]
local message = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
local count = #ARGV - FIRST + 1
if count < 1 or count > 50 or #message > 2000 then
  return redis.error_reply('BADARGS reject takes a message of at most 2000 bytes and 1 to 50 ids')
end
failure = sound_fault(base, queue.levels)
if failure then return failure end
--- @each ripen(base, queue)

-- what is rejected is known before anything is written: a consumer's list of another type is met by then
local answers, seen, chosen = {}, {}, {}
for i = 1, count do
  local job, why = leave_find(base, ARGV[FIRST + i - 1])
  if job and (job.was == 'dead' or seen[job.id]) then why = 'dead' end
  answers[i] = why or 'rejected'
  if not why then
    seen[job.id] = true
    job.index = i
    chosen[#chosen + 1] = job
  end
end
-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
local gone, ids, records, lines = {}, {}, {}, {}
for _, job in ipairs(chosen) do
  if leave_place(base, queue, job) then
    local cause = cjson.encode({ kind = 'rejected', type = 'Rejected', at = queue.now, attempt = job.attempts,
      message = message ~= '' and message or 'rejected by hand' })
    gone[#gone + 1], ids[#ids + 1] = job, job.id
    lines[#lines + 1] = history_lines_row(job.id, job, 'dead', queue.now, '', cause)
    records[#records + 1] = job.id
    records[#records + 1] = dead_letter_store(base, queue.now, job, cause)
  else
    answers[job.index] = 'damaged'
  end
end
if #ids == 0 then return { queue.now, answers } end
if queue.marks then count_up(meta, 'marked', queue.marks) end
count_up(meta, 'rejected', #ids)
--- @each left(base, ids)
records_write(base, queue, records)
history_lines_write(base, queue.history_max, lines)
wait_for_bytes_over(base, queue.now, ids)
--- @if pass
--- @include "consumer/notify_opened"
--- @each pass(base, queue, gone)
notify_opened(base, queue)
--- @end
--- @each vacated(base, { now = queue.now })
return { queue.now, answers }
