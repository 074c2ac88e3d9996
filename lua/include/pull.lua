--- @include "promote"
--- @include "take"
--- @include "consumers"
--- @include "short"

--- The pull itself, shared by `pull` and `settle`. `consumer` = {name=, state=, priority=, want=, bytes=, held_bytes=,
--- held=} where want is the whole window in jobs and bytes that in bytes (0: no limit), held how many jobs are in its
--- hands (nil: not known). `queue` = {now=, levels=, paused=, timer=, ranked=}. Returns the jobs {id, value, ...} and ms
--- until the next due job where this consumer holds the fleet's timer (else -1).

--- Jobs that one call hands out at the most.
local PULL_MAX = 500

--- Work that waits for somebody: elements in the lists, or due jobs not yet promoted.
local function pull_work_waits(base, queue)
  if levels_waiting(base, queue.levels) > 0 then return true end
  local first = redis.call('ZRANGE', base .. 'scheduled', 0, 0, 'WITHSCORES')
  return first[2] ~= nil and tonumber(first[2]) <= queue.now
end

--- Others who wait are told while work is left (the cascade after a batch, and the pass-on of Q-39 and Q-42). Without
--- work one of them must watch the schedule, unless somebody who was told is still to come and will take that on.
local function pull_pass_on(base, queue)
  if queue.paused or queue.quiet then return end
  if redis.call('EXISTS', base .. 'interested') == 0 then return end
  if pull_work_waits(base, queue) then
    consumer_notify(base, queue.now, 1, queue.timer, queue.ranked)
  elseif redis.call('EXISTS', base .. 'scheduled') == 1 and redis.call('EXISTS', base .. 'notified') == 0
    and not (queue.timer and redis.call('ZSCORE', base .. 'interested', queue.timer)) then
    consumer_pass_timer(base, queue.now)
  end
end

--- Where the pull leaves its consumer. A wake-up that it has not read is answered by this very pull.
local function pull_settle_state(base, queue, consumer, to)
  local from = consumer.state
  if to == from and to ~= 'interested' and to ~= 'notified' then return end
  if from == 'notified' and to ~= 'notified' then redis.call('LREM', base .. 'wake:' .. consumer.name, 0, 'w') end
  consumer_move(base, queue.now, consumer.name, from, to, consumer.priority)
  consumer.state = to
end

--- A consumer that is told of no due time does not watch the schedule any more.
local function pull_drop_timer(base, queue, consumer)
  if queue.timer ~= consumer.name then return end
  redis.call('HDEL', base .. 'meta', 'timer')
  queue.timer = false
end

--- ms until the next due job, for the one waiting consumer that watches it; -1 for all others.
local function pull_timer(base, queue, consumer)
  if queue.paused or queue.quiet then return -1 end
  local first = redis.call('ZRANGE', base .. 'scheduled', 0, 0, 'WITHSCORES')
  if not first[2] then return -1 end
  local holder = queue.timer
  if holder and holder ~= consumer.name and redis.call('ZSCORE', base .. 'interested', holder) then return -1 end
  if holder ~= consumer.name then redis.call('HSET', base .. 'meta', 'timer', consumer.name) end
  return math.max(0, tonumber(first[2]) - queue.now)
end

--- In a queue with consumer priorities a lower one takes nothing that a higher one waits for with credit (Q-45).
local function pull_outranked(base, queue, consumer)
  if not queue.ranked then return false end
  local mine = tonumber(consumer.priority) or 0
  local first = redis.call('ZRANGE', base .. 'interested', 0, 0)[1]
  if first and first ~= consumer.name then
    local priority = tonumber(redis.call('HGET', base .. 'consumer:' .. first, 'priority')) or 0
    if priority > mine then return true end
  end
  local told = consumer_highest_notified(base, queue.ranked, consumer.name)
  return told ~= nil and told > mine
end

local function pull_jobs(base, queue, consumer)
  local held_key = base .. 'held:' .. consumer.name
  local held = consumer.held or redis.call('LLEN', held_key)
  local free = consumer.want - held
  if held == 0 then consumer.held_bytes = 0 end
  if free <= 0 then
    pull_settle_state(base, queue, consumer, 'not_interested')
    pull_drop_timer(base, queue, consumer)
    pull_pass_on(base, queue)
    return {}, -1
  end
  if queue.paused then
    pull_settle_state(base, queue, consumer, 'interested')
    pull_drop_timer(base, queue, consumer)
    return {}, -1
  end
  if not queue.quiet then
    local promoted
    promoted, queue.levels = promote_due(base, queue.now, queue.levels)
    queue.promoted = queue.promoted or promoted > 0
  end
  if pull_outranked(base, queue, consumer) then
    pull_settle_state(base, queue, consumer, 'interested')
    pull_pass_on(base, queue)
    -- with the timer handed on, this consumer may be the one that was told
    consumer.state = redis.call('HGET', base .. 'consumer:' .. consumer.name, 'state')
    return {}, consumer.state == 'interested' and pull_timer(base, queue, consumer) or -1
  end
  local want = math.min(free, PULL_MAX)
  local room = nil
  if consumer.bytes > 0 then room = consumer.bytes - consumer.held_bytes end
  local jobs, count, bytes, tight, more = take_heads(base, queue.levels, queue.promoted, want, room, held == 0)
  if count > 0 then
    local ids = {}
    for i = 1, count do ids[i] = jobs[2 * i - 1] end
    redis.call('RPUSH', held_key, unpack(ids))
    if consumer.bytes > 0 then
      consumer.held_bytes = consumer.held_bytes + bytes
    end
    if not queue.quiet then short_gone(base, queue.now, ids, consumer.name) end
  end
  if tight then
    short_wait(base, tight, consumer.name)
    pull_settle_state(base, queue, consumer, 'not_interested')
  elseif count == free then
    pull_settle_state(base, queue, consumer, 'not_interested')
  elseif more or count == want then
    pull_settle_state(base, queue, consumer, 'notified')
  else
    pull_settle_state(base, queue, consumer, 'interested')
    return jobs, pull_timer(base, queue, consumer)
  end
  pull_drop_timer(base, queue, consumer)
  pull_pass_on(base, queue)
  return jobs, -1
end
