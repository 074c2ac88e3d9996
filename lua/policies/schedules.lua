--- Periodic jobs. A schedule says when its job is enqueued, again and again. Its next ticks are known ahead, as numbers:
--- the consumer that looks when one is due, the renewal of a lease, or, while a pool is there, a step that compares jobs
--- enqueues the job in the same step that goes on to the next tick. A tick is one job, however many look, and nobody is
--- its leader (A-41 to A-45).
--- HOOKS: timed, fires, fire, refill, halted, upkeep, keeps, counted, places
--- META: looked, spread
--- JOB: tags (t: how many ticks before it were missed)
--- KEYS: schedules, ticks, owed, refills
--- STORE: list
--- ORDER: 77
--- FAST: yes
--- STRUCTURE: none
--- EXCLUDES: selectors, lifetime, refusals, shard

--- `schedules`: name -> JSON object, see include/tick/record.lua. `ticks`: names of active ones, by their next tick.
--- `owed`: names of those whose tick waits for the end of the job before. `refills`: names of those that have few ticks
--- left; who renews leases computes more.

--- `first` = {_, ms}: what becomes due first, as ZRANGE answers of it; the next tick, where that comes before.
local function schedules_timed(base, first)
  local next_ = redis.pcall('ZRANGE', base .. 'ticks', '0', '0', 'WITHSCORES')
  if next_[2] and (not first[2] or tonumber(next_[2]) < tonumber(first[2])) then first[2] = next_[2] end
end

--- Names of schedules whose next ticks are to be computed. All ticks up to now were looked at, by a pool that is sure to
--- look again within its lease: `looked`. If more are due than one call looks at, the next call goes on from the same time.
local function schedules_refill(base, queue, lease)
  local now = string.format('%d', queue.now)
  if not queue.paused and redis.call('ZCOUNT', base .. 'ticks', '-inf', now) == 0 then
    redis.call('HSET', base .. 'meta', 'looked', string.format('%s,%d', now, lease))
  end
  return redis.call('SRANDMEMBER', base .. 'refills', '16')
end

--- The queue is paused, or goes on: ticks of the time between are missed ones.
local function schedules_halted(base)
  redis.call('HDEL', base .. 'meta', 'looked')
end

--- Whether the policy cannot be given up: an error reply.
local function schedules_keeps(base, given_up)
  if given_up.schedules and redis.call('EXISTS', base .. 'schedules') == 1 then
    return redis.error_reply('CONFLICT kind keeps schedules while the queue has some')
  end
end

local function schedules_places(_, found)
  found[#found + 1] = { 'schedules', 'hash' }
  found[#found + 1] = { 'ticks', 'zset' }
  found[#found + 1] = { 'owed', 'hash' }
  found[#found + 1] = { 'refills', 'set' }
  return found
end
