--- Make scheduled jobs ready now, at the head of their levels: the ones that are due, or the ones named, due or not.
--- They keep the order of their due times, at equal times that of their enqueue, in whatever order they are named
--- (A-09).
--- KEYS: meta, guard
--- ARGV: others, ids...
---   others: how many jobs with later due times are promoted in calls that follow, or are taken to: these are due so many ms
---   before; ids: at most 250; none = what is due, up to 256 in one call
--- REPLY: {now, how many became ready}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "schedule/promote"
--- @include "schedule/member"
--- @include "job/value"
--- @include "consumer/notify"

local meta = KEYS[1]
local others = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
others = tonumber(others)
if #ARGV > FIRST + 249 or not others or others < 0 or others > 2 ^ 31 or others ~= math.floor(others) then
  return redis.error_reply('BADARGS promote takes a number of others and at most 250 ids')
end

failure = sound_fault(base, queue.levels)
if failure then return failure end

-- the ones that are named and scheduled, by due time; `ripe`: those that are due, and ripen
local chosen, known, ripe = {}, {}, 0
if #ARGV >= FIRST then
  local values = redis.call('HMGET', base .. 'jobs', unpack(ARGV, FIRST))
  for i = FIRST, #ARGV do
    local id, value = ARGV[i], values[i - FIRST + 1]
    if value and string.byte(value) ~= 33 and not known[id] then
      known[id] = true
      local job = value_parse(value)
      job.id, job.member = id, schedule_member(job, id)
      job.was_due = tonumber(redis.call('ZSCORE', base .. 'scheduled', job.member))
      if job.was_due and not job.damaged then chosen[#chosen + 1] = job end
      --- @if ripen
      if job.was_due and not job.damaged and job.was_due <= queue.now then
        chosen[#chosen] = nil
        ripe = ripe + 1
      end
      --- @end
    end
  end
  table.sort(chosen, function(a, b) return a.was_due < b.was_due end)
end
--- @each ripen(base, queue)

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
local count, due = #chosen, queue.now - others
for i = count, 1, -1 do
  -- the last one is due now, and each earlier time a ms before the next: a due list is in the order of due times
  local job = chosen[i]
  if i < count and job.was_due < chosen[i + 1].was_due then due = due - 1 end
  local new = math.min(due, job.was_due)
  redis.call('ZADD', base .. 'scheduled', string.format('%d', new), job.member)
  if redis.call('HEXISTS', base .. 'returns_to', job.id) == 0 then
    job.due = new
    redis.call('HSET', base .. 'jobs', job.id, value_header(job) .. job.envelope)
  end
end
--- @each stays(base)
if queue.paused then return { queue.now, ripe + count } end
local promoted, gone = promote_due(base, queue, promote_members(base, queue.now, PROMOTE_MAX))
if promoted > 0 then consumer_notify(base, queue.now, promoted, queue.timer, queue.ranked) end
--- @if pass
--- @include "consumer/notify_opened"
notify_opened(base, queue)
--- @end
--- @each vacated(base, { now = queue.now })
return { queue.now, ripe + math.max(count - gone, promoted) }
