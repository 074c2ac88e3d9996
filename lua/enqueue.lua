--- Accept jobs: each gets its position, becomes ready or scheduled, and wakes one consumer or is handed to it.
--- KEYS: meta
--- ARGV: how, runs, jobs...
---   how: "0" | "1" = hand the one job to a waiting consumer now or refuse (X-01) | else what a writer notes of this
---     step so that it may come twice, see include/writes.lua
---   runs: "<priority>,<when>,<max>,<count>;..." for consecutive jobs; when: "" now, "+<ms>" from now, "@<ms>" at
---   jobs: id, envelope, ... at most 1000 jobs, ids distinct or the later one is refused
--- REPLY: {now, accepted, {0-based index of each job refused because its id is known}, consumer it was handed to or ""}
--- ERRORS: BADARGS | NOCONSUMER | SCHEMA | WRITTEN: the log of the note has another length | PASSED: so has its epoch
--- @include "clock"
--- @include "schema"

local meta = KEYS[1]
local how = ARGV[1]
local runs = ARGV[2]
local FIRST = 3

local base = string.sub(meta, 1, -5)
local total = (#ARGV - FIRST + 1) / 2
if total < 1 or total > 1000 or total ~= math.floor(total) then
  return redis.error_reply('BADARGS enqueue takes 1 to 1000 pairs of id and envelope')
end

if how == '1' and total > 1 then
  return redis.error_reply('BADARGS enqueue: only one job at a time is immediate')
end

local row = redis.call('HMGET', meta, 'v', 'clock', 'levels', 'paused', 'timer', 'ranked', 'priorities', 'browsing')
local fault = schema_fault(row[1])
if fault then return fault end
local now = clock(row[2])
local levels, paused, timer, ranked = row[3] or '', row[4] == '1', row[5], row[6] == '1'

local plan
if runs == '4,,0,' .. total and (not row[7] or row[7] == '10') then
  -- what nearly all enqueues are: one run of ordinary jobs
  plan = { { level = 4, due = 0, max = 0, count = total } }
else
  -- Q-11: the offset that maps JMS priorities onto n levels
  local priorities, planned = tonumber(row[7]) or 10, 0
  local offset = math.max(0, 5 - math.ceil(priorities / 2))
  plan = {}
  for priority, sign, when, max, count in string.gmatch(runs, '(%-?%d+),([+@]?)(%d*),(%d+),(%d+)') do
    local due = 0
    if sign == '+' then due = now + tonumber(when) elseif sign == '@' then due = tonumber(when) end
    plan[#plan + 1] = {
      level = math.max(0, math.min(priorities - 1, tonumber(priority) - offset)),
      due = due > now and due or 0,
      max = tonumber(max),
      count = tonumber(count),
    }
    planned = planned + tonumber(count)
  end
  if planned ~= total then
    return redis.error_reply('BADARGS enqueue: the runs speak of ' .. planned .. ' jobs, the arguments hold ' .. total)
  end
end

local note, noted
if how ~= '0' and how ~= '1' then
  --- @include "writes"
  note, fault = writes_open(base, how)
  if not note then return fault end
  noted = writes_note
end

local ids, refused, seen, accepted = {}, {}, {}, total
for i = 1, total do ids[i] = ARGV[FIRST + 2 * (i - 1)] end
local waiters = paused and {} or redis.call('ZRANGE', base .. 'interested', '0', '31')
local live = redis.call('HMGET', base .. 'jobs', unpack(ids))
local ended = redis.call('HMGET', base .. 'ended', unpack(ids))
local older = redis.call('HMGET', base .. 'ended:old', unpack(ids))
for i = 1, total do
  local id = ids[i]
  if live[i] or ended[i] or older[i] or seen[id] then
    refused[#refused + 1] = i - 1
    ids[i] = false
    accepted = accepted - 1
  end
  seen[id] = true
end
if accepted == 0 then
  if note then noted(note, 0, total) end
  return { now, 0, refused, '' }
end

-- Direct hand-off: nothing waits before the job, and a waiting consumer has credit for it.
local taker, give
if total == 1 and #waiters > 0 and plan[1].due == 0 then
  --- @include "hand_over"
  taker, give = hand_over_taker(base, now, levels, ranked, waiters, #ARGV[FIRST + 1] + 64), hand_over
end
if how == '1' and not taker then
  return redis.error_reply('NOCONSUMER no consumer waits with credit for this job')
end

if not row[1] then schema_stamp(meta) end
local position = redis.call('HINCRBY', meta, 'seq', accepted) - accepted
local stored, lists, scheduled, soonest, ready = {}, {}, nil, nil, 0
local index = 0
for _, run in ipairs(plan) do
  local level, due = run.level, run.due
  local tail
  if level == 4 and run.max == 0 and due == 0 then
    tail = string.format(',%d;', now)
  else
    tail = string.format(',%d,%d,0,0,%d,%d;', now, level, run.max, due)
  end
  local waiting = lists[level]
  for i = index + 1, index + run.count do
    local id = ids[i]
    if id then
      position = position + 1
      stored[#stored + 1] = id
      stored[#stored + 1] = string.format('%d', position) .. tail .. ARGV[FIRST + 2 * i - 1]
      if due > 0 then
        scheduled = scheduled or {}
        scheduled[#scheduled + 1] = { due = due, position = position, id = id }
        if not soonest or due < soonest then soonest = due end
      else
        if not waiting then
          waiting = {}
          lists[level] = waiting
        end
        waiting[#waiting + 1] = id
        ready = ready + 1
      end
    end
  end
  index = index + run.count
end
redis.call('HSET', base .. 'jobs', unpack(stored))
if ready > 0 and not (levels == '4' and plan[1].level == 4 and #plan == 1) then
  --- @include "levels"
  levels_use(meta, levels, lists)
end

if taker then
  give(base, now, taker, timer, stored[1], stored[2])
else
  for level, waiting in pairs(lists) do redis.call('RPUSH', base .. 'ready:' .. level, unpack(waiting)) end
  if #waiters > 0 and ready > 0 then
    --- @include "consumers"
    consumer_notify(base, now, ready, timer, ranked)
  end
end
if scheduled then
  --- @include "schedule"
  schedule_add(base, scheduled)
  if not paused then schedule_watch(base, now, soonest, timer) end
end
if row[8] then
  --- @include "consumers"
  consumer_tell_browsers(base)
end
if note then noted(note, accepted, total) end
return { now, accepted, refused, taker and taker.name or '' }
