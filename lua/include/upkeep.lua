--- @include "leave"
--- @include "records"
--- @include "move"
--- @include "consumers"
--- @include "pass_on"

--- What whoever looks next sets right: leases that ended, notifications that nobody answered, work that nobody was
--- told of, records that are old. A few steps per call.

local UPKEEP_LEASES = 4
local UPKEEP_NOTIFIED = 16

--- A host that died charges only what its slots could have been running: its oldest jobs, as many as it had slots.
local function upkeep_leases(base, queue)
  local ended = redis.call('ZRANGEBYSCORE', base .. 'consumers', '-inf', '(' .. string.format('%d', queue.now),
    'LIMIT', 0, UPKEEP_LEASES)
  for _, consumer in ipairs(ended) do
    local row = redis.call('HMGET', base .. 'consumer:' .. consumer, 'slots', 'worker')
    queue.worker = row[2] or ''
    local charged = {}
    -- the running ones are charged once, though the hands may be emptied in several slices
    local running = redis.call('LRANGE', base .. 'held:' .. consumer, 0, (tonumber(row[1]) or 1) - 1)
    local cause = cjson.encode({ kind = 'crash', type = 'LeaseEnded', at = queue.now, worker = queue.worker,
      message = 'the lease of the worker ended: its host, its pool or its connection was gone' })
    for _, id in ipairs(running) do charged[id] = cause end
    -- fenced from the first slice on: a settle in the old term finds no consumer
    redis.call('HDEL', base .. 'consumer:' .. consumer, 'term')
    if leave_slice(base, queue, consumer, charged) == 0 then leave_lists(base, queue, consumer) end
  end
  return #ended
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

local function upkeep_run(base, queue)
  local reclaimed = upkeep_leases(base, queue)
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
  if queue.since then records_turn(base, queue) end
  return reclaimed
end
