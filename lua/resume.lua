--- Deliver again; as many waiting consumers are notified as there is work for (H-16).
--- KEYS: meta, guard
--- ARGV: none
--- REPLY: {now, 1 if it was paused before, else 0}
--- ERRORS: DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "order/waiting"
--- @include "consumer/notify"

local meta = KEYS[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if not queue.paused then return { queue.now, 0 } end
failure = sound_fault(base, queue.levels)
if failure then return failure end

redis.call('HDEL', meta, 'paused', 'timer')
local waiting = waiting_count(base, queue.levels)
local due = redis.call('ZCOUNT', base .. 'scheduled', '-inf', queue.now)
if waiting + due > 0 then
  consumer_notify(base, queue.now, waiting + due, false, queue.ranked)
end
-- the consumer that watched the schedule may have looked meanwhile, and learned nothing: one of them looks again
consumer_wake_timer(base, queue.now)
return { queue.now, 1 }
