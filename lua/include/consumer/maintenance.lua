--- @include "consumer/remove"
--- @include "finish/suspects"
--- @include "finish/lapsed"
--- @include "consumer/lists"
--- @include "consumer/notify"
--- @include "consumer/notify_next"
--- @hooks timed

--- What the next renewal sets right: leases that ended, notifications that no consumer answered, work of which no
--- consumer was notified. A few steps per call.

--- Leases that ended which one call looks at, and jobs that it releases of all of them.
local MAINTENANCE_LEASES, MAINTENANCE_JOBS = 16, 200
local MAINTENANCE_NOTIFIED = 16

--- Returns how many consumers left, and whether leases that ended are left for another call.
local function maintenance_leases(base, queue)
  local past = '(' .. string.format('%d', queue.now)
  local ended = redis.call('ZRANGEBYSCORE', base .. 'consumers', '-inf', past, 'LIMIT', 0, MAINTENANCE_LEASES)
  local gone, room = 0, MAINTENANCE_JOBS
  for _, consumer in ipairs(ended) do
    if room == 0 then break end
    local row = redis.call('HMGET', base .. 'consumer:' .. consumer, 'worker', 'alive')
    queue.worker = row[1] or ''
    local cause = { kind = 'crash', type = 'LeaseEnded', at = queue.now, worker = queue.worker, consumer = consumer,
      traceback = '',
      message = 'the lease of the worker ended: its host, its pool or its connection was gone' }
    local charged, count = {}, 0
    local left, given = consumer_remove_slice(base, queue, consumer, not row[2] and function(jobs, others)
      charged, count = suspects_of(base, consumer, jobs, others, cause)
      return charged
    end or charged, room)
    local ids = {}
    for id in pairs(charged) do ids[#ids + 1] = id end
    lapsed_note(base, consumer, ids)
    if left == 0 then
      consumer_remove(base, queue, consumer)
      gone = gone + 1
    else
      -- fenced from the first slice on: a settle in the old term finds no consumer
      redis.call('HDEL', base .. 'consumer:' .. consumer, 'term')
      suspects_note(base, consumer, count)
    end
    room = room - given
  end
  return gone, #ended > 0 and redis.call('ZCOUNT', base .. 'consumers', '-inf', past) > 0
end

local function maintenance_notified(base, queue)
  local late = redis.call('ZRANGEBYSCORE', base .. 'notified', '-inf', queue.now, 'LIMIT', 0, MAINTENANCE_NOTIFIED)
  for _, consumer in ipairs(late) do
    local priority = redis.call('HGET', base .. 'consumer:' .. consumer, 'priority')
    -- it will be notified again: its wake-ups must not pile up while it is busy
    redis.call('LREM', base .. 'wake:' .. consumer, 0, 'w')
    consumer_lists_move(base, queue.now, consumer, 'notified', 'interested', priority)
  end
end

--- Returns how many consumers whose leases had ended left, and whether more is to be done at once.
local function maintenance_run(base, queue)
  local gone, more = maintenance_leases(base, queue)
  maintenance_notified(base, queue)
  --- @if fires
  -- ticks are due although nobody pulls
  local fires
  if not queue.paused then
    --- @each fires = fires(base, queue)
  end
  if fires then
    --- @each fire(base, queue, fires)
    local first = {}
    --- @each timed(base, first)
    more = more or first[2] ~= nil and tonumber(first[2]) <= queue.now
  end
  --- @end
  --- @if upkeep
  local late
  --- @each late = upkeep(base, queue)
  more = more or late
  --- @end
  --- @each audience(base, false)
  if not queue.paused and redis.call('EXISTS', base .. 'interested') == 1
    and redis.call('EXISTS', base .. 'notified') == 0 then
    --- @if tell
    notify_next(base, queue)
    --- @end
    --- @if timed
    local first = {}
    --- @each timed(base, first)
    --- @end
    if notify_next_work_waits(base, queue) then
      consumer_notify(base, queue.now, 1, queue.timer, queue.ranked)
    --- @if timed
    elseif first[2] and not (queue.timer and redis.call('ZSCORE', base .. 'interested', queue.timer)) then
      consumer_wake_timer(base, queue.now)
    --- @end
    elseif redis.call('EXISTS', base .. 'scheduled') == 1
      and not (queue.timer and redis.call('ZSCORE', base .. 'interested', queue.timer)) then
      consumer_wake_timer(base, queue.now)
    end
  end
  --- @if tell
  if not queue.paused and redis.call('EXISTS', base .. 'interested') == 1 then
    --- @each tell(base, queue.now, 1, queue.timer, queue.ranked, { idle = true })
  end
  --- @end
  return gone, more
end

--- Whether `maintenance_run` would find nothing to do, nor any consumer to touch: most renewals of a large fleet, which
--- then look at no consumer but those that they name. No lease has ended, no notification is late, and those that wait
--- have no work and no schedule to watch. Kinds in which more may be due do not ask.
local function maintenance_idle(base, queue)
  --- @if fires
  do return false end
  --- @end
  --- @if upkeep
  do return false end
  --- @end
  --- @if tell
  do return false end
  --- @end
  --- @if timed
  do return false end
  --- @end
  local now = string.format('%d', queue.now)
  if redis.call('ZRANGEBYSCORE', base .. 'consumers', '-inf', '(' .. now, 'LIMIT', 0, 1)[1]
    or redis.call('ZRANGEBYSCORE', base .. 'notified', '-inf', now, 'LIMIT', 0, 1)[1] then
    return false
  end
  if queue.paused or redis.call('EXISTS', base .. 'interested') == 0 or redis.call('EXISTS', base .. 'notified') == 1 then
    return true
  end
  return not notify_next_work_waits(base, queue) and (redis.call('EXISTS', base .. 'scheduled') == 0
    or queue.timer and redis.call('ZSCORE', base .. 'interested', queue.timer) and true or false)
end
