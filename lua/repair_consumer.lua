--- Set a consumer right: one that is not registered releases what it holds, uncharged, and goes off all lists; a
--- registered one is in the one list that its window and what it holds call for, and its bytes are counted again.
--- KEYS: meta, guard
--- ARGV: consumer
--- REPLY: {now, the list it is in, or "" when it is gone, jobs of an unregistered one that are left: call again}
--- ERRORS: DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "consumer/remove"

local meta = KEYS[1]
local consumer = ARGV[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end

failure = sound_fault(base, queue.levels, { consumer })
if failure then return failure end

local row_key, held = base .. 'consumer:' .. consumer, base .. 'held:' .. consumer
local row = redis.call('HMGET', row_key, 'term', 'state', 'priority', 'mode', 'jobs', 'bytes', 'worker')
if not row[1] or not redis.call('ZSCORE', base .. 'consumers', consumer) then
  queue.worker = row[7] or ''
  local left = consumer_remove_slice(base, queue, consumer, {})
  if left == 0 then consumer_remove(base, queue, consumer) end
  return { queue.now, '', left }
end

local bytes = 0
for _, id in ipairs(redis.call('LRANGE', held, 0, -1)) do bytes = bytes + redis.call('HSTRLEN', base .. 'jobs', id) end
if (tonumber(row[6]) or 0) > 0 then redis.call('HSET', row_key, 'held_bytes', bytes) end
local free = (tonumber(row[5]) or 0) - redis.call('LLEN', held)
--- @if standby
local standby
--- @each standby = standby(base, consumer)
if standby then free = 0 end
--- @end
local interested = redis.call('ZSCORE', base .. 'interested', consumer)
local notified = redis.call('ZSCORE', base .. 'notified', consumer)
local busy = redis.call('SISMEMBER', base .. 'not_interested', consumer) == 1
local to
if row[4] == 'browse' then
  to = (tonumber(row[5]) or 0) > 0 and 'browsers' or 'not_interested'
elseif free <= 0 or (busy and not interested and not notified) then
  to = 'not_interested'
elseif interested and not notified and not busy then
  to = 'interested'
else
  to = 'notified'
end
for _, list in ipairs({ 'interested', 'notified' }) do
  if list ~= to then redis.call('ZREM', base .. list, consumer) end
  --- @if waits
  if list == 'interested' then
    --- @each waits(base, consumer, list == to and interested)
  end
  --- @end
end
for _, list in ipairs({ 'not_interested', 'browsers' }) do
  if list ~= to then redis.call('SREM', base .. list, consumer) end
end
if to == 'interested' then
  redis.call('HSET', row_key, 'state', to)
else
  consumer_lists_move(base, queue.now, consumer, nil, to, row[3])
end
-- it is woken so that it looks: a pull sorts out the rest
if to == 'notified' then redis.call('RPUSH', base .. 'wake:' .. consumer, 'w') end
if to == 'browsers' then redis.call('HSET', meta, 'browsing', '1') end
if queue.timer == consumer and to ~= 'interested' then consumer_wake_timer(base, queue.now) end
return { queue.now, to, 0 }
