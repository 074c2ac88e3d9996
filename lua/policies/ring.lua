--- At most so many jobs are ready: one more displaces the oldest of the lowest level, which may be the one that comes.
--- What is held, scheduled or dead does not count (Q-67, X-08).
--- HOOKS: displace, trim, configured, options, ripen
--- META: ring_jobs
--- JOB: none
--- KEYS: none
--- STORE: list
--- ORDER: 30
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: ttl, last_value, exclusive, groups, selectors, lifetime, bounded, max_bytes, hold, refusals, unique,
---   flows, limits, front, shard, shares
--- @include "order/unlabelled"

--- What is ready and what may be, {ready=, most=, bytes=, most_bytes=}: endless where that has no limit; nil where
--- neither has one.
local function ring_look(base)
  local row = redis.call('HMGET', base .. 'meta', 'ring_jobs', 'marked')
  local most = tonumber(row[1]) or 0
  local look = { most = most > 0 and most or math.huge, most_bytes = math.huge, bytes = 0 }
  --- @each weight(base, look)
  if look.most == math.huge and look.most_bytes == math.huge then return nil end
  look.ready = unlabelled_count(base) - (tonumber(row[2]) or 0)
  return look
end

--- `plan.trims`: whether `plan.ready` more jobs, of `plan.bytes`, may displace others.
local function ring_displace(base, _, plan)
  local look = ring_look(base)
  if look and (look.ready + plan.ready > look.most or look.bytes + (plan.bytes or 0) > look.most_bytes) then
    plan.trims = true
  end
end

--- What may be configured, into `limits`.
local function ring_options(_, limits)
  limits.ring_jobs = { 0, 1000000000 }
end
