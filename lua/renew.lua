--- Renew the leases of living consumers, and set right what others left behind (leases that ended, wake-ups that
--- nobody answered). A lease that had ended goes on where nobody has taken its jobs back yet: they are held by it alone.
--- Where another client has, or has begun to, that charges none of its jobs: a consumer that is named lives.
--- KEYS: meta, guard
--- ARGV: lease, consumers...
---   lease: ms from now; consumers: names, at most 1000
--- REPLY: {now, {names that are not registered any more}, consumers whose leases had ended and that left in this call,
---   1 if more such are left: call again at once, {id, task, cause JSON, ... of jobs that are dead now, for their
---   crashes}}, and how many jobs are in the outbox, where they are to be sent now, and
---   {names of schedules whose next ticks are to be computed}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "consumer/maintenance"
--- @include "finish/lapsed"

local meta = KEYS[1]
local lease = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
lease = tonumber(lease)
if not lease or not (lease > 0) or #ARGV - FIRST + 1 > 1000 then
  return redis.error_reply('BADARGS renew: a lease in ms and at most 1000 names')
end

failure = sound_fault(base, queue.levels, false)
--- @if upkeep
--- @if meets
--- @include "queue/sound_swept"
failure = failure or sound_swept(base, queue.now, {})
--- @end
--- @end
if failure then return failure end
local gone, ended = {}, {}
for i = FIRST, #ARGV do
  local name = ARGV[i]
  local until_ = redis.call('ZSCORE', base .. 'consumers', name)
  if not until_
    or tonumber(until_) < queue.now and redis.call('HEXISTS', base .. 'consumer:' .. name, 'term') == 0 then
    gone[#gone + 1] = name
    ended[name] = until_ and 'waits' or 'left'
    failure = sound_type(base, 'lapsed:' .. name, 'list') or sound_type(base, 'consumer:' .. name, 'hash')
    if failure then return failure end
  end
end

if gone[1] or not maintenance_idle(base, queue) then
  -- whose leases have ended are about to leave
  local past = '(' .. string.format('%d', queue.now)
  failure = sound_fault(base, nil, redis.call('ZRANGEBYSCORE', base .. 'consumers', '-inf', past, 'LIMIT', '0', WAKE_LAST))
  if failure then return failure end
end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
for i = FIRST, #ARGV do
  local name = ARGV[i]
  if not ended[name] then
    redis.call('ZADD', base .. 'consumers', queue.now + lease, name)
  else
    -- who is named lives: the end of its lease charges nobody
    lapsed_forgive(base, name)
    if ended[name] == 'waits' then redis.call('HSET', base .. 'consumer:' .. name, 'alive', '1') end
  end
end
--- @each ripen(base, queue)
local left, more = maintenance_run(base, queue)
--- @if refill
local lacking
--- @each lacking = refill(base, queue, lease)
if lacking[1] then
  local outgoing = 0
  --- @if sends
  local sends
  --- @each sends = sends(base, queue.now)
  outgoing = sends
  --- @end
  return { queue.now, gone, left, more and 1 or 0, queue.died or {}, outgoing, lacking }
end
--- @end
--- @if sends
local sends
--- @each sends = sends(base, queue.now)
if sends > 0 then return { queue.now, gone, left, more and 1 or 0, queue.died or {}, sends } end
--- @end
return { queue.now, gone, left, more and 1 or 0, queue.died or {} }
