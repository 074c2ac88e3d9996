--- A queue goes by itself when its last consumer has left, some time later: if it is empty then, or with all that is in
--- it (Q-60, A-37). Redis ends its keys, all at the same time; a consumer or a job that comes before that keeps them. A
--- queue that never had a consumer stays. Browsers are none, and neither is who takes a job and leaves (Q-25): one
--- with no slots. `had_consumer`: "1" one came since the queue was last left; "g" such a one came in its last time; "l" the
--- last one left while jobs waited: the queue goes when these have ended.
--- HOOKS: joined, gone, vacated, options, configured, stays
--- META: delete_after_ms, delete_if, had_consumer
--- JOB: none
--- KEYS: none
--- STORE: list
--- ORDER: 85
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: groups, selectors, last_value, ring, schedules, refusals, flows, limits, shard, shares
--- @hooks stays

--- The longest delay, ms: a year. `delete_if`: 0 never, 1 where it is empty, 2 always.
local LIFETIME_MOST = 31536000000

local function lifetime_joined(base, consumer, mode)
  if mode == 'browse' then return nil end
  local had = '1'
  if redis.call('HGET', base .. 'consumer:' .. consumer, 'slots') == '0' then
    local goes = redis.call('PTTL', base .. 'meta') >= 0 or redis.call('HGET', base .. 'meta', 'had_consumer') == 'g'
    had = goes and 'g' or nil
  end
  lifetime_stays(base)
  if had then redis.call('HSET', base .. 'meta', 'had_consumer', had) end
end

local function lifetime_options(_, limits)
  limits.delete_if, limits.delete_after_ms = { 0, 2 }, { 0, LIFETIME_MOST }
end

--- Terms go on from the time of day: a consumer of a former queue of this name has an earlier one.
local function lifetime_configured(base, queue)
  local term = tonumber(redis.call('HGET', base .. 'meta', 'term')) or 0
  if term < queue.now then redis.call('HSET', base .. 'meta', 'term', string.format('%d', queue.now)) end
  lifetime_stays(base)
end
