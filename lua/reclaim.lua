--- Take the jobs of a dead consumer back at once: those that were running are charged, the others are not.
--- KEYS: meta, guard
--- ARGV: consumer, cause, charged...
---   cause: JSON object that says how it died; charged: ids of the jobs that were running
--- REPLY: {now, jobs left in its hands}: 0 = it is gone; call again while some is left
--- ERRORS: DAMAGED | GONE | SCHEMA
--- @include "queue"
--- @include "sound"
--- @include "leave"

local meta = KEYS[1]
local consumer = ARGV[1]
local cause = ARGV[2]
local FIRST = 3

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local worker = redis.call('HGET', base .. 'consumer:' .. consumer, 'worker')
if not worker then return redis.error_reply('GONE consumer is not registered, or its lease ended') end

failure = sound_fault(base, queue.levels, { consumer })
if failure then return failure end

queue.worker = worker
local charged = {}
for i = FIRST, #ARGV do charged[ARGV[i]] = cause end
local left = leave_slice(base, queue, consumer, charged)
if left == 0 then leave_lists(base, queue, consumer) end
return { queue.now, left }
