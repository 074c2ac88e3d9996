--- At most so many jobs are ready: one more displaces the oldest of the lowest level, which may be the one that comes.
--- What is held, scheduled or dead does not count (Q-67, X-08).
--- HOOKS: displace, trim, configured, options
--- META: ring_jobs
--- JOB: none
--- KEYS: none
--- STORE: list
--- ORDER: 30
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: ttl, last_value, exclusive, groups, selectors, lifetime, bounded, hold, refusals, unique, flows, limits,
---   front
--- @include "order/unlabelled"

--- How many jobs are ready, and how many may be; nil where there is no limit.
local function ring_count(base)
  local row = redis.call('HMGET', base .. 'meta', 'ring_jobs', 'marked')
  local most = tonumber(row[1]) or 0
  if most < 1 then return nil end
  return unlabelled_count(base) - (tonumber(row[2]) or 0), most
end

--- `plan.trims`: whether `plan.ready` more jobs displace others.
local function ring_displace(base, _, plan)
  local ready, most = ring_count(base)
  if ready and ready + plan.ready > most then plan.trims = true end
end

--- What may be configured, into `limits`.
local function ring_options(_, limits)
  limits.ring_jobs = { 0, 1000000000 }
end
