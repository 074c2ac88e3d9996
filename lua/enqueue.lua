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
--- @include "value"
--- @include "levels"
--- @include "consumers"
--- @include "schedule"
--- @include "writes"

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
if row[1] and row[1] ~= '1' then
  return redis.error_reply('SCHEMA this queue was written by another version of rqueue: schema ' .. row[1])
end
local now = clock(row[2])
local paused, timer, ranked = row[4] == '1', row[5], row[6] == '1'

-- Q-11: the offset that maps JMS priorities onto n levels
local priorities = tonumber(row[7]) or 10
local offset = math.max(0, 5 - math.ceil(priorities / 2))
local plan, planned = {}, 0
if runs == '4,,0,' .. total and priorities == 10 then
  -- what nearly all enqueues are: one run of ordinary jobs
  plan[1] = { level = 4, due = 0, max = 0, count = total }
  planned = total
  runs = ''
end
for priority, how, when, max, count in string.gmatch(runs, '(%-?%d+),([+@]?)(%d*),(%d+),(%d+)') do
  local due = 0
  if how == '+' then due = now + tonumber(when) elseif how == '@' then due = tonumber(when) end
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

local note, fault
if how ~= '0' and how ~= '1' then
  note, fault = writes_open(base, how)
  if not note then return fault end
end

local ids = {}
for i = 1, total do ids[i] = ARGV[FIRST + 2 * (i - 1)] end
local waiters = not paused and redis.call('EXISTS', base .. 'interested') == 1
local live = redis.call('HMGET', base .. 'jobs', unpack(ids))
local ended = redis.call('HMGET', base .. 'ended', unpack(ids))
local older = redis.call('HMGET', base .. 'ended:old', unpack(ids))
local seen, refused, accepted = {}, {}, 0
for i = 1, total do
  local id = ids[i]
  if live[i] or ended[i] or older[i] or seen[id] then
    refused[#refused + 1] = i - 1
    ids[i] = false
  else
    seen[id] = true
    accepted = accepted + 1
  end
end
if accepted == 0 then
  if note then writes_note(note, 0, total) end
  return { now, 0, refused, '' }
end

-- Direct hand-off: nothing waits before the job, and a waiting consumer has credit for it.
local taker
if total == 1 and plan[1].due == 0 and waiters then
  local names = redis.call('ZRANGE', base .. 'interested', 0, WAKE_MAX - 1)
  if levels_waiting(base, row[3]) == 0 then
    local first = redis.call('ZRANGE', base .. 'scheduled', 0, 0, 'WITHSCORES')
    if not first[2] or tonumber(first[2]) > now then
      local floor = consumer_highest_notified(base, ranked)
      for _, name in ipairs(names) do
        local who = redis.call('HMGET', base .. 'consumer:' .. name, 'priority', 'jobs', 'bytes', 'held_bytes')
        if floor and (tonumber(who[1]) or 0) < floor then break end
        local held = redis.call('LLEN', base .. 'held:' .. name)
        local bytes = tonumber(who[3]) or 0
        local size = #ARGV[FIRST + 1] + 64
        if tonumber(who[2]) > held and (bytes == 0 or held == 0 or (tonumber(who[4]) or 0) + size <= bytes) then
          taker = { name = name, priority = who[1], bytes = bytes, held = held, last = tonumber(who[2]) == held + 1 }
          break
        end
      end
    end
  end
end
if how == '1' and not taker then
  return redis.error_reply('NOCONSUMER no consumer waits with credit for this job')
end

if not row[1] then
  redis.call('HSET', meta, 'v', '1')
end
local position = redis.call('HINCRBY', meta, 'seq', accepted) - accepted
local stored, lists, scheduled, used, soonest, ready = {}, {}, {}, {}, nil, 0
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
        scheduled[#scheduled + 1] = due
        scheduled[#scheduled + 1] = value_seat(position, id)
        if not soonest or due < soonest then soonest = due end
      else
        if not waiting then
          waiting = {}
          lists[level] = waiting
          used[level] = true
        end
        waiting[#waiting + 1] = id
        ready = ready + 1
      end
    end
  end
  index = index + run.count
end
redis.call('HSET', base .. 'jobs', unpack(stored))
if ready > 0 then levels_use(meta, row[3], used) end

if taker then
  redis.call('RPUSH', base .. 'held:' .. taker.name, stored[1])
  if taker.bytes > 0 and taker.held > 0 then
    redis.call('HINCRBY', base .. 'consumer:' .. taker.name, 'held_bytes', #stored[2])
  elseif taker.bytes > 0 then
    redis.call('HSET', base .. 'consumer:' .. taker.name, 'held_bytes', #stored[2])
  end
  consumer_move(base, now, taker.name, 'interested', taker.last and 'not_interested' or 'notified', taker.priority)
  redis.call('RPUSH', base .. 'wake:' .. taker.name, 'J' .. struct.pack('>I4', #stored[1]) .. stored[1] .. stored[2])
  if taker.name == timer then consumer_pass_timer(base, now) end
else
  for level, waiting in pairs(lists) do redis.call('RPUSH', base .. 'ready:' .. level, unpack(waiting)) end
  if waiters and ready > 0 then consumer_notify(base, now, ready, timer, ranked) end
end
if #scheduled > 0 then
  schedule_add(base, scheduled)
  if not paused then schedule_watch(base, now, soonest, timer) end
end
if row[8] then consumer_tell_browsers(base) end
if note then writes_note(note, accepted, total) end
return { now, accepted, refused, taker and taker.name or '' }
