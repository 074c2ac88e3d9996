--- Give jobs that wait another place (A-38): the tail of another level, or the front of their own. A job whose place is
--- kept while it is scheduled comes to the front of its new level when it is due. Each change is a row in history.
--- KEYS: meta, guard
--- ARGV: to, items...
---   to: a priority from 0 to 9 | front = before all that waits in the same level, the first one that is named first
---   items: id, envelope, fresh, ... of at most 50 jobs; envelope: as the caller has read it, fresh: the same job signed
---   for this priority; both "": it stays
--- REPLY: {now, {what became of each, ...}}: changed, or why it is not: same = it has this priority, scheduled = it is not
---   ready to go to the front, sorted = its sort key says where it stands, held, blocked <id of the job that has the turn of its group>, dead, ended, unknown, damaged,
---   other = it has another envelope by now
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "queue/count"
--- @include "job/value"
--- @include "schedule/member"
--- @include "order/front"
--- @include "order/levels"
--- @include "order/replace"
--- @include "result/read"
--- @include "held/scan"
--- @include "history/lines"
--- @include "consumer/browsers"
--- @include "consumer/wait_for_bytes"
--- @hooks unblock
--- @hooks shelf

local meta = KEYS[1]
local to = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
local count = (#ARGV - FIRST + 1) / 3
if count < 1 or count > 50 or count ~= math.floor(count) then
  return redis.error_reply('BADARGS reorder takes 1 to 50 jobs, each with two envelopes')
end
local priority = to ~= 'front' and string.match(to, '^%d$')
if to ~= 'front' and not priority then
  return redis.error_reply('BADARGS reorder: a priority from 0 to 9, or front')
end
local run = { priority = tonumber(priority) or 4, more = '', tags = '', due = 0 }
local row = redis.call('HGET', meta, 'priorities')
--- @each failure = admit({ base = base, now = queue.now, priorities = tonumber(row) or 10 }, run)
if failure then return failure end
failure = sound_fault(base, queue.levels .. ',' .. run.level)
if failure then return failure end

--- What the job is, and why it stays as it is; nil and its place where it is to change.
local function why_not(id, value, envelope)
  if not value then return result_read(base, id) and 'ended' or 'unknown' end
  if string.byte(value) == 33 then return 'ended' end
  if redis.call('ZSCORE', base .. 'dead', id) then return 'dead' end
  local job = value_parse(value)
  if job.damaged then return 'damaged' end
  job.id = id
  if envelope ~= '' and envelope ~= job.envelope then return 'other' end
  if priority and job.level == run.level then return 'same' end
  local member = schedule_member(job, id)
  local score = redis.call('ZSCORE', base .. 'scheduled', member)
  if score and not priority then return 'scheduled' end
  if score then return nil, job, score, member end
  if held_scan_holder(base, id) then return 'held' end
  local first
  --- @each first = awaits(base, job)
  if first then return 'deferred' end
  if not priority then
    --- @each first = fixed(job)
    if first then return 'sorted' end
  end
  --- @each first = ahead(base, job)
  if first then return 'blocked ' .. first end
  return nil, job
end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
--- @each ripen(base, queue)
local answers, lines, moved, marks, used, fronted = {}, {}, {}, 0, {}, false

--- Out of its place, whatever that is; false where it does not stand there.
local function leave(job)
  local placed
  --- @each placed = unblock(base, queue, job)
  if placed then return true end
  if not order_replace(base, job) then return false end
  marks = marks + 1
  return true
end

--- Into its new one, at one end of its level.
local function enter(job)
  local rest, key = { job }, base .. 'ready:' .. job.level
  --- @each rest = shelf(base, queue, rest)
  if not rest[1] then return end
  if job.due > 0 then redis.call('LPUSH', base .. 'due:' .. job.level, job.id) else redis.call('RPUSH', key, job.id) end
end

local from, till, step = 1, count, 1
if not priority then from, till, step = count, 1, -1 end
for i = from, till, step do
  local at = FIRST + 3 * (i - 1)
  local id, fresh = ARGV[at], ARGV[at + 2]
  local why, job, score, member = why_not(id, redis.call('HGET', base .. 'jobs', id), ARGV[at + 1])
  if not why and not score and not leave(job) then why = 'damaged' end
  answers[i] = why or 'changed'
  if not why then
    job.level = priority and run.level or job.level
    if score and redis.call('HEXISTS', base .. 'returns_to', id) == 1 then
      -- among the jobs of that level no other place is its own
      job.due, fronted = queue.now, true
    elseif not score and priority then
      job.position, job.due = redis.call('HINCRBY', meta, 'seq', 1), 0
      count_up(meta, 'tailed', 1)
    elseif not score then
      job.due, fronted = order_front(base, queue.now, job.level), true
      --- @each job.due = foremost(base, job, job.due)
    end
    if fresh ~= '' then job.envelope = fresh end
    redis.call('HSET', base .. 'jobs', id, value_header(job) .. job.envelope)
    lines[#lines + 1] = history_lines_row(id, job, 'changed', queue.now)
    used[job.level] = true
    if score then
      redis.call('ZREM', base .. 'scheduled', member)
      redis.call('ZADD', base .. 'scheduled', score, schedule_member(job, id))
    else
      moved[#moved + 1] = id
      enter(job)
    end
  end
end
if marks > 0 then count_up(meta, 'marked', marks) end
if #lines == 0 then --- @each stays(base)
return { queue.now, answers } end
queue.levels = levels_use(meta, queue.levels, used)
if fronted then redis.call('HSET', meta, 'promoted', '1') end
history_lines_write(base, queue.history_max, lines)
if #moved > 0 then
  browsers_tell(base)
  wait_for_bytes_over(base, queue.now, moved)
end
return { queue.now, answers }
