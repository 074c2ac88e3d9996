--- Jobs that wait end as expired because people say so (A-38), whatever time to live they have: as if it were over, so
--- they may become dead letters, or go to the queue to which expired jobs go. What a consumer holds stays with it.
--- KEYS: meta, guard
--- ARGV: ids...
---   ids: at most 50
--- REPLY: {now, {what became of each, ...}}: expired, or why it is not: held, dead, ended, unknown, damaged
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "queue/count"
--- @include "finish/leave"
--- @include "finish/end"
--- @hooks dropped
--- @hooks left

local meta = KEYS[1]
local FIRST = 1

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
local count = #ARGV
if count < 1 or count > 50 then return redis.error_reply('BADARGS expire takes 1 to 50 ids') end
failure = sound_fault(base, queue.levels)
if failure then return failure end
--- @each ripen(base, queue)

-- what expires is known before anything is written: a consumer's list of another type is met by then
local answers, ids, jobs, seen, chosen = {}, {}, {}, {}, {}
for i = FIRST, count do
  local job, why = leave_find(base, ARGV[i])
  if job and job.was == 'dead' then why = 'dead' end
  if job and seen[job.id] then why = 'ended' end
  answers[i] = why or 'expired'
  if not why then
    seen[job.id] = true
    job.index = i
    chosen[#chosen + 1] = job
  end
end
-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
for _, job in ipairs(chosen) do
  if leave_place(base, queue, job) then
    ids[#ids + 1] = job.id
    jobs[#jobs + 1] = job.id
    jobs[#jobs + 1] = job.value
  else
    answers[job.index] = 'damaged'
  end
end
if #ids == 0 then return { queue.now, answers } end
if queue.marks then count_up(meta, 'marked', queue.marks) end
local policy = false
--- @if dropped
policy = true
--- @if pass
--- @include "consumer/notify_opened"
--- @end
--- @each dropped(base, queue, jobs, { waiting = false })
--- @if pass
notify_opened(base, queue)
--- @end
--- @each vacated(base, { now = queue.now })
--- @end
if not policy then
  --- @if route
  --- @include "outgoing/move"
  for i = 1, #jobs, 2 do
    local job, to = value_parse(jobs[i + 1]), nil
    job.id = jobs[i]
    --- @each to = route(base, job, 'expired')
    if to then
      outgoing_move(base, queue.now, job, to, 'expired', cjson.encode({ kind = 'expired', type = 'JobExpired',
        at = queue.now, attempt = job.attempts, message = 'expired by hand' }))
    end
  end
  --- @end
  end_jobs(base, queue, ids, 'E', 'expired')
end
return { queue.now, answers }
