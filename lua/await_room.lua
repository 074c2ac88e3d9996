--- A producer waits for room in a bounded queue, and says so again while it waits; or it gives up. Once it may have room
--- its list `room:<producer>` has a word.
--- KEYS: meta, guard
--- ARGV: producer, jobs, wait, bytes
---   producer: a name of letters and digits, made for this wait; jobs, bytes: that it is about to enqueue, in their
---   envelopes
---   wait: ms within which it says again that it waits; "0" = it gives up, or has no use for its grant
--- REPLY: {now, state}; state: waits | granted: that many are kept for it, for some seconds | free: nothing bounds the
---   queue, or it cannot be waited for: enqueue, which says so | over
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/open"
--- @include "queue/sound"

local meta = KEYS[1]
local producer = ARGV[1]
local jobs = ARGV[2]
local wait = ARGV[3]
local bytes = ARGV[4]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
jobs, wait, bytes = tonumber(jobs), tonumber(wait), tonumber(bytes)
if not string.find(producer, '^%w+$') or not jobs or jobs < 1 or not wait or wait < 0 or not bytes or bytes < 0 then
  return redis.error_reply('BADARGS await_room: a name of letters and digits, a number of jobs, ms, and bytes')
end

local state
--- @if room
--- @include "room/sound"
failure = room_sound(base)
if failure then return failure end
--- @each ripen(base, queue)
--- @if overdue
--- @include "room/sweep"
sweep_room(base, queue)
--- @end
--- @each state = room(base, queue.now, producer, { jobs = jobs, wait = wait, bytes = bytes })
--- @end
if not state then
  -- it is blocked already, on its list, and is to enqueue
  local room = base .. 'room:' .. producer
  failure = sound_type(base, 'room:' .. producer, 'list')
  if failure then return failure end
  redis.call('RPUSH', room, 'w')
  redis.call('PEXPIRE', room, 5000)
end
return { queue.now, state or 'free' }
