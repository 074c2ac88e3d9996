--- @include "leave"
--- @include "suspects"
--- @include "move"
--- @include "consumers"
--- @include "pass_on"

--- What whoever looks next sets right: leases that ended, notifications that nobody answered, work that nobody was
--- told of. A few steps per call.

--- Leases that ended which one call looks at, and jobs that it gives back of all of them.
local UPKEEP_LEASES, UPKEEP_JOBS = 16, 200
local UPKEEP_NOTIFIED = 16

--- Returns how many consumers left, and whether leases that ended are left for another call.
local function upkeep_leases(base, queue)
  local past = '(' .. string.format('%d', queue.now)
  local ended = redis.call('ZRANGEBYSCORE', base .. 'consumers', '-inf', past, 'LIMIT', 0, UPKEEP_LEASES)
  local gone, room = 0, UPKEEP_JOBS
  for _, consumer in ipairs(ended) do
    if room == 0 then break end
    queue.worker = redis.call('HGET', base .. 'consumer:' .. consumer, 'worker') or ''
    local cause = { kind = 'crash', type = 'LeaseEnded', at = queue.now, worker = queue.worker, traceback = '',
      message = 'the lease of the worker ended: its host, its pool or its connection was gone' }
    local count
    local left, given = leave_slice(base, queue, consumer, function(jobs, others)
      local charged
      charged, count = suspects_of(base, consumer, jobs, others, cause)
      return charged
    end, room)
    if left == 0 then
      leave_lists(base, queue, consumer)
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

local function upkeep_notified(base, queue)
  local late = redis.call('ZRANGEBYSCORE', base .. 'notified', '-inf', queue.now, 'LIMIT', 0, UPKEEP_NOTIFIED)
  for _, consumer in ipairs(late) do
    local priority = redis.call('HGET', base .. 'consumer:' .. consumer, 'priority')
    -- it will be told again: its wake-ups must not pile up while it is busy
    redis.call('LREM', base .. 'wake:' .. consumer, 0, 'w')
    consumer_move(base, queue.now, consumer, 'notified', 'interested', priority)
  end
end

--- Returns how many consumers whose leases had ended left, and whether more is to be done at once.
local function upkeep_run(base, queue)
  local gone, more = upkeep_leases(base, queue)
  upkeep_notified(base, queue)
  if not queue.paused and redis.call('EXISTS', base .. 'interested') == 1
    and redis.call('EXISTS', base .. 'notified') == 0 then
    if pull_work_waits(base, queue) then
      consumer_notify(base, queue.now, 1, queue.timer, queue.ranked)
    elseif redis.call('EXISTS', base .. 'scheduled') == 1
      and not (queue.timer and redis.call('ZSCORE', base .. 'interested', queue.timer)) then
      consumer_pass_timer(base, queue.now)
    end
  end
  return gone, more
end
