--- @include "consumer/lists"
--- @include "queue/constants"

--- Who is told of work, and who watches the schedule.

--- The highest priority among notified consumers (but for `except`) that may still take a job; nil where priorities
--- are not in use.
local function notify_highest(base, ranked, except)
  if not ranked then return nil end
  local highest
  for _, name in ipairs(redis.call('ZRANGE', base .. 'notified', 0, WAKE_MAX - 1)) do
    local row = redis.call('HMGET', base .. 'consumer:' .. name, 'priority', 'jobs')
    local free = (tonumber(row[2]) or 0) - redis.call('LLEN', base .. 'held:' .. name)
    local priority = tonumber(row[1]) or 0
    if name ~= except and free > 0 and (not highest or priority > highest) then highest = priority end
  end
  return highest
end

--- Tell one interested consumer: it becomes notified and must pull. False if it was told already.
local function notify_one(base, now, consumer)
  if redis.call('ZREM', base .. 'interested', consumer) == 0 then return false end
  consumer_lists_move(base, now, consumer, nil, 'notified')
  redis.call('RPUSH', base .. 'wake:' .. consumer, 'w')
  return true
end

--- Somebody who waits must hold the fleet's timer while jobs are scheduled. When its holder leaves the waiting
--- ones, the consumer that would be woken last takes over: it pulls, and learns the next due time.
local function notify_pass_timer(base, now)
  redis.call('HDEL', base .. 'meta', 'timer')
  if redis.call('EXISTS', base .. 'scheduled') == 0 then return end
  local last = redis.call('ZREVRANGE', base .. 'interested', 0, 0)[1]
  if last then notify_one(base, now, last) end
end

--- Tell as many interested consumers as `jobs` arrivals need, best first, and no more (Q-37, H-16).
local function consumer_notify(base, now, jobs, timer, ranked)
  local names = redis.call('ZRANGE', base .. 'interested', 0, math.min(jobs, WAKE_MAX) - 1)
  if #names == 0 then return 0 end
  local floor = notify_highest(base, ranked)
  local covered, woken = 0, 0
  for _, name in ipairs(names) do
    if covered >= jobs then break end
    local row = redis.call('HMGET', base .. 'consumer:' .. name, 'priority', 'jobs')
    if floor and (tonumber(row[1]) or 0) < floor then break end
    if notify_one(base, now, name) then woken = woken + 1 end
    if name == timer then notify_pass_timer(base, now) end
    covered = covered + math.max(1, (tonumber(row[2]) or 0) - redis.call('LLEN', base .. 'held:' .. name))
  end
  return woken
end

--- Every browser is told of every arrival; one unread wake-up is enough.
local function notify_browsers(base)
  for _, name in ipairs(redis.call('SMEMBERS', base .. 'browsers')) do
    local wake = base .. 'wake:' .. name
    if redis.call('LLEN', wake) == 0 then redis.call('RPUSH', wake, 'w') end
  end
end
