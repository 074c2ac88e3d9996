--- @include "consumer/state"
--- @include "pull/dequeue"
--- @hooks timed

--- The pull itself, shared by `pull` and `settle`. `consumer` = {name=, state=, priority=, want=, bytes=, held_bytes=,
--- held=} where want is the whole window in jobs and bytes that in bytes (0: no limit), held how many jobs it
--- holds (nil: not known). `queue` = {now=, levels=, paused=, timer=, ranked=}. Returns the jobs {id, value, ...}, ms
--- until the next due job where this consumer holds the fleet's timer (else -1), and behind which job they come: the id
--- that this consumer held last, "" where it held none or nothing was taken. Held jobs are in the order of taking, so a
--- consumer that does not know this id has not yet heard of a job that was delivered directly before these (X-25).
--- Where this call settled all that it held, this costs no look: nothing is unread.

--- @if fires
--- Levels that a tick may have.
local ALL_LEVELS = '9,8,7,6,5,4,3,2,1,0'
--- @end
--- Jobs that one call delivers at the most.
local PULL_MAX = 500

--- ms until the next due job, for the one waiting consumer that watches it; -1 for all others.
local function pull_timer(base, queue, consumer)
  if queue.paused or queue.quiet then return -1 end
  local first = redis.call('ZRANGE', base .. 'scheduled', 0, 0, 'WITHSCORES')
  --- @each timed(base, first)
  if not first[2] then return -1 end
  local holder = queue.timer
  if holder and holder ~= consumer.name and redis.call('ZSCORE', base .. 'interested', holder) then return -1 end
  if holder ~= consumer.name then redis.call('HSET', base .. 'meta', 'timer', consumer.name) end
  return math.max(0, tonumber(first[2]) - queue.now)
end

--- The consumer takes nothing more now: it goes to that list, and what it knew is passed on.
local function pull_leave(base, queue, consumer, to)
  local tell, work
  if not (queue.paused or queue.quiet) then
    --- @include "pull/others"
    if others_wait(base, queue, consumer) then
      --- @include "consumer/notify_next"
      -- looked for before the consumer moves: a key of another type is met here
      work, tell = notify_next_work_waits(base, queue), notify_next
    end
  end
  consumer_state_set(base, queue, consumer, to)
  if to ~= 'interested' or queue.paused then consumer_state_drop_timer(base, queue, consumer) end
  if tell then tell(base, queue, work) end
end

--- In a queue with consumer priorities a lower one takes nothing that a higher one waits for with credit (Q-45).
local function pull_outranked(base, queue, consumer)
  --- @if audience
  -- asked class by class instead
  do return false end
  --- @end
  --- @include "consumer/highest"
  local mine = tonumber(consumer.priority) or 0
  local first = redis.call('ZRANGE', base .. 'interested', 0, 0)[1]
  if first and first ~= consumer.name then
    local priority = tonumber(redis.call('HGET', base .. 'consumer:' .. first, 'priority')) or 0
    if priority > mine then return true end
  end
  local notified = consumer_highest(base, queue.ranked, consumer.name)
  return notified ~= nil and notified > mine
end

local function pull_take(base, queue, consumer, taken)
  --- @if vacated
  --- @each taken.crowded = crowded(base)
  if type(taken.crowded) == 'table' then error(taken.crowded) end
  --- @end
  --- @each audience(base, consumer.name)
  local held_key = base .. 'held:' .. consumer.name
  --- @if standby
  local standby
  --- @each standby = standby(base, consumer.name)
  if standby then
    consumer_state_set(base, queue, consumer, 'not_interested')
    return {}, -1, ''
  end
  --- @end
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
  --- @if overdue
  -- a key of another type is met here, where nothing is changed yet
  local overdue
  --- @each overdue = overdue(base, queue.now, queue)
  --- @end
  --- @if fires
  queue.quiet = false
  local fires
  --- @each fires = fires(base, queue)
  if fires then
    --- @include "queue/sound"
    --- @include "queue/sound_jobs"
    --- @include "pull/sound"
    -- what is promoted then, too, is looked at now
    local fault = sound_fault(base, ALL_LEVELS, { consumer.name }) or sound_jobs(base, fires.tags)
    if fault then error(fault) end
    local members = promote_members(base, queue.now, want)
    fault = #members > 0 and sound_due(base, queue, consumer.name, members)
    if fault then error(fault) end
    --- @each fire(base, queue, fires)
  end
  queue.fired = true
  --- @end
  if not queue.quiet then
    --- @each ripen(base, queue, consumer.name)
    --- @include "schedule/promote"
    local due = promote_members(base, queue.now, want)
    if #due > 0 then
      --- @include "pull/sound"
      local fault = sound_due(base, queue, consumer.name, due)
      if fault then error(fault) end
      promote_due(base, queue, due, consumer.name)
    end
  end
  if queue.ranked and pull_outranked(base, queue, consumer) then
    pull_leave(base, queue, consumer, 'interested')
    -- with the timer passed on, this consumer may be the one that was notified
    consumer.state = redis.call('HGET', base .. 'consumer:' .. consumer.name, 'state')
    return {}, consumer.state == 'interested' and pull_timer(base, queue, consumer) or -1, ''
  end
  --- @if overdue
  --- @if pass
  -- what ends first makes way for what is taken then
  if overdue then
    --- @include "queue/sound"
    --- @include "queue/sound_swept"
    local fault = sound_fault(base, queue.levels, { consumer.name }) or sound_swept(base, queue.now, {})
    if fault then error(fault) end
    --- @each upkeep(base, queue, consumer.name)
    overdue = nil
  end
  --- @end
  --- @end
  --- @if rearms
  local rearms
  --- @each rearms = rearms(base)
  if rearms then
    --- @include "pull/others"
    queue.quiet = false
    -- a key of another type is met here, where nothing is changed yet
    others_wait(base, queue, consumer)
  end
  --- @end
  local room = consumer.bytes > 0 and consumer.bytes - consumer.held_bytes or nil
  local dequeue = dequeue_heads
  --- @if heads
  --- @include "pull/merge"
  local heads
  --- @each heads = heads(base, consumer, { ranked = queue.ranked })
  dequeue = function(...) return merge_heads(heads, ...) end
  --- @end
  --- @if deal
  dequeue = function(_, levels, promoted, most, left, empty)
    --- @each deal(base, queue, levels, promoted, most, left, empty, taken)
    return taken.jobs, taken.ids, taken.bytes, taken.tight, taken.more, taken.dropped
  end
  --- @end
  local jobs, ids, bytes, tight, more = dequeue(base, queue.levels, queue.promoted, want, room, held == 0, taken)
  local count, behind = #ids, ''
  if count > 0 then
    if held > 0 then behind = redis.call('LINDEX', held_key, '-1') end
    redis.call('RPUSH', held_key, unpack(ids))
    taken.held = count
    if room then consumer.held_bytes = consumer.held_bytes + bytes end
  end
  local to = (tight or count == free) and 'not_interested' or (more or count == want) and 'notified' or 'interested'
  local others = not queue.quiet and (tight or count > 0) and redis.call('EXISTS', base .. 'byte_waiters') == 1
  --- @if dropped
  others = others or #taken.dropped > 0
  --- @end
  --- @if overdue
  others = others or overdue
  --- @end
  if others then
    --- @include "consumer/wait_for_bytes"
    --- @include "queue/sound"
    local fault = sound_fault(base, queue.levels, { consumer.name })
    --- @if dropped
    --- @if meets
    --- @include "queue/sound_jobs"
    local values = {}
    for i = 2, #taken.dropped, 2 do values[#values + 1] = taken.dropped[i] end
    fault = fault or sound_jobs(base, values)
    --- @end
    --- @end
    if fault then error(fault) end
    wait_for_bytes_over(base, queue.now, ids, consumer.name)
  end
  --- @if dropped
  if #taken.dropped > 0 then
    --- @each dropped(base, queue, taken.dropped, { taker = consumer.name })
  end
  --- @end
  --- @if overdue
  if overdue then
    --- @each upkeep(base, queue, consumer.name)
  end
  --- @end
  --- @if dropped
  --- @if heads
  -- what made way for others has to be followed by another pull
  if others and to == 'interested' and redis.call('EXISTS', unpack(heads)) > 0 then to = 'notified' end
  --- @end
  --- @end
  --- @if audience
  if to == 'interested' and heads.outranked then
    pull_leave(base, queue, consumer, to)
    consumer.state = redis.call('HGET', base .. 'consumer:' .. consumer.name, 'state')
    return jobs, consumer.state == 'interested' and pull_timer(base, queue, consumer) or -1, behind
  end
  --- @end
  if to == 'interested' then
    consumer_state_set(base, queue, consumer, to)
    return jobs, pull_timer(base, queue, consumer), behind
  end
  pull_leave(base, queue, consumer, to)
  if tight then
    --- @include "consumer/wait_for_bytes"
    wait_for_bytes(base, tight, consumer.name)
  end
  return jobs, -1, behind
end

--- Returns nil and an error reply where something else has written one of the keys: nothing is changed then.
local function pull_jobs(base, queue, consumer)
  local bytes = consumer.held_bytes
  --- @if rearms
  queue.looks = true
  --- @end
  local taken = { '', '', jobs = {}, ids = {}, count = 0, bytes = 0, rounds = 0, more = false, held = nil, tight = nil }
  --- @if eligible
  taken.now, taken.dropped = queue.now, {}
  --- @end
  local done, jobs, timer, behind = pcall(pull_take, base, queue, consumer, taken)
  if done then
    --- @if taken
    -- nothing can fail any more: `overdue` has met the same keys
    if #taken.ids > 0 then
      --- @each taken(base, taken.ids, taken.jobs, consumer.name, queue)
    end
    --- @end
    --- @if rearms
    if queue.sooner then
      --- @include "schedule/watch_sooner"
      if consumer.state == 'interested' then
        redis.call('HDEL', base .. 'meta', 'timer')
        queue.timer = false
        timer = pull_timer(base, queue, consumer)
      else
        watch_sooner(base, queue.now)
      end
    end
    --- @end
    --- @each closing(base, queue, consumer)
    --- @if vacated
    if taken.crowded then
      --- @each vacated(base, { now = queue.now })
    end
    --- @end
    return jobs, timer, behind
  end
  --- @include "pull/undone"
  undone_pull(base, consumer, taken)
  consumer.held_bytes = bytes
  return nil, jobs
end
