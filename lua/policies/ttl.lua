--- A job that waits for longer than its time to live is not delivered any more: it ends as expired, or becomes a dead
--- letter. The time counts from the enqueue. While a consumer holds the job it costs nothing, and what is scheduled does
--- not expire before it is due (Q-62, Q-63).
--- HOOKS: defaults, admit, entered, eligible, taken, dropped, left, overdue, swept, upkeep, ended, revived, options, places
--- META: ttl_ms, ttl_min_ms, ttl_max_ms, ttl_dead
--- JOB: expires
--- KEYS: expiring
--- STORE: list
--- ORDER: 10
--- FAST: yes
--- STRUCTURE: none
--- EXCLUDES: selectors, last_value, ring, refusals

--- The longest time to live, ms: ten years.
local TTL_MOST = 315360000000

--- Due time and expiry in a value's header; other headers are shorter.
local TTL_HEADER = '^%d+,%-?%d+,%d+,%d+,%d+,%d+,(%d+),%d+,%d+,(%d+)[|;]'

--- When a job expires that is enqueued now, 0 = never: `own` ms or, where that is 0, the queue's; within the queue's
--- bounds, of which the greatest also holds for jobs that would live for ever. `queue` = {base=, now=}.
local function ttl_expires(queue, own)
  if not queue.ttl then
    queue.ttl = redis.call('HMGET', queue.base .. 'meta', 'ttl_ms', 'ttl_min_ms', 'ttl_max_ms')
  end
  local ms, least, most = tonumber(queue.ttl[1]) or 0, tonumber(queue.ttl[2]) or 0, tonumber(queue.ttl[3]) or 0
  if own > 0 then ms = own end
  if most > 0 and (ms == 0 or ms > most) then ms = most end
  if ms > 0 and ms < least then ms = least end
  return ms > 0 and queue.now + math.min(ms, TTL_MOST) or 0
end

--- Whether a job that says nothing of itself has terms all the same. `said`: whether its terms are special already.
local function ttl_defaults(base, said)
  if said then return said end
  local limits = redis.call('HMGET', base .. 'meta', 'ttl_ms', 'ttl_max_ms')
  return (tonumber(limits[1]) or 0) + (tonumber(limits[2]) or 0) > 0
end

local function ttl_admit(queue, run)
  local own = string.match(run.more, '^~(%d+)') or '0'
  if #own > 12 or tonumber(own) > TTL_MOST then
    return redis.error_reply('BADARGS enqueue: a time to live of ' .. own .. ' ms')
  end
  run.more = string.gsub(run.more, '^~%d+', '', 1)
  local expires = ttl_expires(queue, tonumber(own))
  run.expires = expires > 0 and expires - (run.age or 0) or 0
end

--- Of the jobs {id, value, ...} those that wait from now on are noted where their time to live is to end.
local function ttl_entered(base, now, stored)
  local timed = {}
  for i = 1, #stored, 2 do
    local due, expires = string.match(stored[i + 1], TTL_HEADER)
    if expires and expires ~= '0' and tonumber(due) <= now then
      timed[#timed + 1] = expires
      timed[#timed + 1] = stored[i]
    end
  end
  if #timed > 0 then redis.call('ZADD', base .. 'expiring', unpack(timed)) end
end

--- The outcome of a job that must not be delivered, else nil.
local function ttl_eligible(value, now)
  local _, expires = string.match(value, TTL_HEADER)
  if expires and expires ~= '0' and tonumber(expires) < now then return 'expired' end
end

local function ttl_taken(base, ids)
  redis.call('ZREM', base .. 'expiring', unpack(ids))
end

local function ttl_left(base, ids)
  redis.call('ZREM', base .. 'expiring', unpack(ids))
end

--- The record of a job that waits and whose time to live is over, though nobody has swept it yet; else nil. `value`: as
--- it is stored.
local function ttl_ended(base, id, value, now)
  if not ttl_eligible(value, now) or not redis.call('ZSCORE', base .. 'expiring', id) then return nil end
  if redis.call('HGET', base .. 'meta', 'ttl_dead') == '1' then return string.format('F%d:{"kind":"expired"}', now) end
  return string.format('E%d:', now)
end

--- Whether the time to live of a job that waits is over.
local function ttl_overdue(base, now)
  return redis.call('ZCOUNT', base .. 'expiring', '-inf', string.format('(%d', now)) > 0
end

--- A dead letter lives again: its time is over, or counted from its first life. What the queue says counts from now.
local function ttl_revived(base, now, job)
  job.expires = ttl_expires({ base = base, now = now }, 0)
end

--- What may be configured, into `limits`; an error reply where `given`, option -> value, cannot be.
local function ttl_options(base, limits, given)
  for _, option in ipairs({ 'ttl_ms', 'ttl_min_ms', 'ttl_max_ms' }) do limits[option] = { 0, TTL_MOST } end
  limits.ttl_dead = { 0, 1 }
  local present = redis.call('HMGET', base .. 'meta', 'ttl_min_ms', 'ttl_max_ms')
  local least = tonumber(given.ttl_min_ms or present[1]) or 0
  local most = tonumber(given.ttl_max_ms or present[2]) or 0
  if most > 0 and least > most then
    return redis.error_reply(string.format('CONFLICT ttl_min is %d ms, which is more than ttl_max, %d ms', least, most))
  end
end

local function ttl_places(_, found)
  found[#found + 1] = { 'expiring', 'zset' }
  return found
end
