--- Say how much a consumer may hold from now on, without pulling: none makes it not interested, some interested.
--- KEYS: meta, guard
--- ARGV: consumer, term, jobs, bytes
--- REPLY: {now, state}; where work waits the state is notified: pull
--- ERRORS: BADARGS | DAMAGED | GONE | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "consumer/open"
--- @include "consumer/window"
--- @include "queue/sound"
--- @include "consumer/state"
--- @include "consumer/notify_next"

local meta = KEYS[1]
local consumer = ARGV[1]
local term = ARGV[2]
local jobs = ARGV[3]
local bytes = ARGV[4]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local me
me, failure = consumer_open(base, consumer, term)
if not me then return failure end
jobs, bytes = tonumber(jobs), tonumber(bytes)
if not jobs or not bytes or jobs < 0 or bytes < 0 then
  return redis.error_reply('BADARGS interest: a window is two numbers')
end

failure = sound_fault(base, queue.levels, { consumer })
if failure then return failure end
--- @each audience(base, consumer)
window_grant(base, me, jobs, bytes)
window_account(base, me, false)
if me.browses then
  local state = jobs > 0 and 'browsers' or 'not_interested'
  if state ~= me.state then consumer_state_set(base, queue, me, state) end
  if jobs > 0 then redis.call('HSET', meta, 'browsing', '1') end
  return { queue.now, state }
end
local free = jobs - redis.call('LLEN', base .. 'held:' .. consumer)
--- @if standby
local standby
--- @each standby = standby(base, consumer)
if standby then free = 0 end
--- @end
if free <= 0 then
  if me.state ~= 'not_interested' then
    consumer_state_set(base, queue, me, 'not_interested')
    consumer_state_drop_timer(base, queue, me)
    notify_next(base, queue)
  end
elseif me.state == 'not_interested' then
  local work = not queue.paused and notify_next_work_waits(base, queue)
  consumer_state_set(base, queue, me, work and 'notified' or 'interested')
  if not work then
    -- where nobody watches the schedule, one of those that wait pulls and learns the next due time: perhaps this one
    notify_next(base, queue)
    me.state = redis.call('HGET', base .. 'consumer:' .. consumer, 'state')
  end
end
return { queue.now, me.state }
