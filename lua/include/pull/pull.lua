--- @include "consumer/state"
--- @include "pull/dequeue"

--- The pull itself, shared by `pull` and `settle`. `consumer` = {name=, state=, priority=, want=, bytes=, held_bytes=,
--- held=} where want is the whole window in jobs and bytes that in bytes (0: no limit), held how many jobs it
--- holds (nil: not known). `queue` = {now=, levels=, paused=, timer=, ranked=}. Returns the jobs {id, value, ...}, ms
--- until the next due job where this consumer holds the fleet's timer (else -1), and behind which job they come: the id
--- that this consumer held last, "" where it held none or nothing was taken. Held jobs are in the order of taking, so a
--- consumer that does not know this id has not yet heard of a job that was delivered directly before these (X-25).
--- Where this call settled all that it held, this costs no look: nothing is unread.

--- Jobs that one call delivers at the most.
local PULL_MAX = 500

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

--- What this consumer knew is passed on.
local function pull_pass_on(base, queue)
  if queue.paused or queue.quiet then return end
  --- @include "consumer/notify_next"
  notify_next(base, queue)
end

--- The consumer takes nothing more now: it goes to that list.
local function pull_leave(base, queue, consumer, to)
  consumer_state_set(base, queue, consumer, to)
  consumer_state_drop_timer(base, queue, consumer)
  pull_pass_on(base, queue)
end

--- In a queue with consumer priorities a lower one takes nothing that a higher one waits for with credit (Q-45).
local function pull_outranked(base, queue, consumer)
  --- @include "consumer/highest"
  local mine = tonumber(consumer.priority) or 0
  local first = redis.call('ZRANGE', base .. 'interested', 0, 0)[1]
  if first and first ~= consumer.name then
    local priority = tonumber(redis.call('HGET', base .. 'consumer:' .. first, 'priority')) or 0
    if priority > mine then return true end
  end
  local told = consumer_highest(base, queue.ranked, consumer.name)
  return told ~= nil and told > mine
end

local function pull_jobs(base, queue, consumer)
  local held_key = base .. 'held:' .. consumer.name
  local held = consumer.held or redis.call('LLEN', held_key)
  local free = consumer.want - held
  if held == 0 then consumer.held_bytes = 0 end
  if free <= 0 then
    pull_leave(base, queue, consumer, 'not_interested')
    return {}, -1, ''
  end
  if queue.paused then
    pull_leave(base, queue, consumer, 'interested')
    return {}, -1, ''
  end
  local want = math.min(free, PULL_MAX)
  if not queue.quiet then
    --- @include "schedule/promote"
    promote_due(base, queue, want, consumer.name)
  end
  if queue.ranked and pull_outranked(base, queue, consumer) then
    consumer_state_set(base, queue, consumer, 'interested')
    pull_pass_on(base, queue)
    -- with the timer passed on, this consumer may be the one that was told
    consumer.state = redis.call('HGET', base .. 'consumer:' .. consumer.name, 'state')
    return {}, consumer.state == 'interested' and pull_timer(base, queue, consumer) or -1, ''
  end
  local room = consumer.bytes > 0 and consumer.bytes - consumer.held_bytes or nil
  local dequeue = dequeue_heads
  --- @if heads
  --- @include "pull/merge"
  local heads
  --- @each heads = heads(base)
  dequeue = function(...) return merge_heads(heads, ...) end
  --- @end
  local jobs, ids, bytes, tight, more, dropped =
    dequeue(base, queue.levels, queue.promoted, want, room, held == 0, queue.now)
  local count, behind = #ids, ''
  if count > 0 then
    if held > 0 then behind = redis.call('LINDEX', held_key, '-1') end
    redis.call('RPUSH', held_key, unpack(ids))
    if room then consumer.held_bytes = consumer.held_bytes + bytes end
    --- @each taken(base, ids)
  end
  if tight or not queue.quiet then
    --- @include "consumer/wait_for_bytes"
    wait_for_bytes_over(base, queue.now, ids, consumer.name)
    if tight then wait_for_bytes(base, tight, consumer.name) end
  end
  --- @if dropped
  if #dropped > 0 then
    --- @each dropped(base, queue, dropped, { taker = consumer.name })
  end
  --- @end
  --- @if overdue
  local overdue
  --- @each overdue = overdue(base, queue.now)
  if overdue then
    --- @each upkeep(base, queue, consumer.name)
  end
  --- @end
  if tight or count == free then
    pull_leave(base, queue, consumer, 'not_interested')
  elseif more or count == want then
    pull_leave(base, queue, consumer, 'notified')
  else
    consumer_state_set(base, queue, consumer, 'interested')
    return jobs, pull_timer(base, queue, consumer), behind
  end
  return jobs, -1, behind
end
