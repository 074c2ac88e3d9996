--- At most so many consumers are live, the others stand by: they are delivered nothing, and take over in the order of
--- their priorities and registrations when a live one has left and its last job is back (A-28, Q-68). A queue may also
--- refuse consumers beyond a number, or any beside the one that it has (Q-18, A-36). Browsers do not count.
--- HOOKS: admits, joined, standby, gone, options, configured, upkeep, places
--- META: live_consumers, strict, max_consumers
--- JOB: none
--- KEYS: live, standbys
--- STORE: list
--- ORDER: 40
--- FAST: yes
--- STRUCTURE: none
--- EXCLUDES: selectors, last_value, ring, refusals, sticky
--- @include "consumer/lists"
--- @include "queue/count"

--- `live`: set of consumers that take jobs. `standbys`: those that stand by, who takes over first before the others.

--- Consumers that a queue takes at the most.
local EXCLUSIVE_MOST = 10000

--- The limits of a queue as numbers: live consumers, whether it takes one consumer only, consumers; 0: no limit.
local function exclusive_limits(base)
  local row = redis.call('HMGET', base .. 'meta', 'live_consumers', 'strict', 'max_consumers')
  return tonumber(row[1]) or 0, row[2] == '1', tonumber(row[3]) or 0
end

--- Who is registered and acquires, and neither stands by nor is known to be live, is live: consumers that were there
--- before the policy.
local function exclusive_count(base)
  for _, name in ipairs(redis.call('ZRANGE', base .. 'consumers', '0', string.format('%d', EXCLUSIVE_MOST))) do
    if redis.call('HGET', base .. 'consumer:' .. name, 'mode') == 'acquire'
      and not redis.call('ZSCORE', base .. 'standbys', name) then
      redis.call('SADD', base .. 'live', name)
    end
  end
end

--- How many acquire, those that stand by included.
local function exclusive_acquiring(base)
  if redis.call('EXISTS', base .. 'live') == 1 then
    return redis.call('SCARD', base .. 'live') + redis.call('ZCARD', base .. 'standbys')
  end
  local count = 0
  for _, name in ipairs(redis.call('ZRANGE', base .. 'consumers', '0', string.format('%d', EXCLUSIVE_MOST))) do
    if redis.call('HGET', base .. 'consumer:' .. name, 'mode') == 'acquire' then count = count + 1 end
  end
  return count
end

--- Those that stand by take over while fewer are live than may be. They are to look.
local function exclusive_promote(base, now)
  local most = exclusive_limits(base)
  if redis.call('EXISTS', base .. 'standbys') == 0 then return end
  if most > 0 and redis.call('SCARD', base .. 'live') < most then exclusive_count(base) end
  while most == 0 or redis.call('SCARD', base .. 'live') < most do
    local name = redis.call('ZPOPMIN', base .. 'standbys')[1]
    if not name then return end
    local row = redis.call('HMGET', base .. 'consumer:' .. name, 'jobs', 'state')
    if row[2] then
      redis.call('SADD', base .. 'live', name)
      if (tonumber(row[1]) or 0) > 0 and row[2] == 'not_interested' then
        consumer_lists_move(base, now, name, 'not_interested', 'notified')
        redis.call('RPUSH', base .. 'wake:' .. name, 'w')
      end
    end
  end
end

--- An error reply where this queue takes no further consumer.
local function exclusive_admits(base, mode)
  if mode == 'browse' then return nil end
  local _, strict, most = exclusive_limits(base)
  if not strict and most == 0 then return nil end
  local count = exclusive_acquiring(base)
  if strict and count > 0 then
    return redis.error_reply('REFUSED the queue is exclusive (strict): it has its one consumer, and takes no other')
  end
  if most > 0 and count >= most then
    return redis.error_reply(string.format('REFUSED the queue takes %d consumers (max_consumers), and has them', most))
  end
end

--- It is registered: live, or one that stands by, which this answers.
local function exclusive_joined(base, name, mode, priority)
  if mode == 'browse' then return nil end
  local most = exclusive_limits(base)
  if redis.call('EXISTS', base .. 'live') == 0 then exclusive_count(base) end
  redis.call('SREM', base .. 'live', name)
  if most == 0 or redis.call('SCARD', base .. 'live') < most then
    redis.call('SADD', base .. 'live', name)
    return nil
  end
  local turn = count_up(base .. 'meta', 'turn', 1)
  redis.call('ZADD', base .. 'standbys', turn - priority * 68719476736, name)
  return true
end

--- Whether it stands by: it is delivered nothing.
local function exclusive_standby(base, name)
  return redis.call('ZSCORE', base .. 'standbys', name)
end

--- It is registered no more, and holds nothing.
local function exclusive_gone(base, queue, name)
  redis.call('ZREM', base .. 'standbys', name)
  redis.call('SREM', base .. 'live', name)
  exclusive_promote(base, queue.now)
end

local function exclusive_options(base, limits, given)
  limits.live_consumers, limits.max_consumers, limits.strict = { 0, EXCLUSIVE_MOST }, { 0, EXCLUSIVE_MOST }, { 0, 1 }
  local count = (given.strict == '1' or given.max_consumers) and exclusive_acquiring(base) or 0
  if given.strict == '1' and count > 1 then
    return redis.error_reply(string.format('CONFLICT strict cannot be: the queue has %d consumers', count))
  end
end

--- Limits were set: who is live stays so.
local function exclusive_configured(base, queue)
  exclusive_count(base)
  exclusive_promote(base, queue.now)
end

--- The next renewal of a lease sets right that none is live who could be: a name that is registered no more is not live.
local function exclusive_upkeep(base, queue)
  if redis.call('EXISTS', base .. 'standbys') == 0 then return false end
  for _, name in ipairs(redis.call('SMEMBERS', base .. 'live')) do
    if not redis.call('ZSCORE', base .. 'consumers', name) then redis.call('SREM', base .. 'live', name) end
  end
  exclusive_promote(base, queue.now)
  return false
end

local function exclusive_places(_, found)
  found[#found + 1] = { 'live', 'set' }
  found[#found + 1] = { 'standbys', 'zset' }
  return found
end
