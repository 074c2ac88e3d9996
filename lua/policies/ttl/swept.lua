--- Jobs that one call looks at: fewer where each has to be found in its list.
local TTL_SWEPT, TTL_SWEPT_DEAD = '64', '16'

--- The ids that one call looks at, and how many these are at the most.
local function ttl_swept_ids(base, now)
  local most = redis.call('HGET', base .. 'meta', 'ttl_dead') == '1' and TTL_SWEPT_DEAD or TTL_SWEPT
  --- @if route
  most = TTL_SWEPT_DEAD
  --- @end
  return redis.call('ZRANGEBYSCORE', base .. 'expiring', '-inf', string.format('(%d', now), 'LIMIT', '0', most), most
end

--- The values of what `upkeep` will look at, for who asks which keys it meets: into `found`.
local function ttl_swept(base, now, found)
  local ids = ttl_swept_ids(base, now)
  for _, value in ipairs(#ids > 0 and redis.call('HMGET', base .. 'jobs', unpack(ids)) or {}) do
    found[#found + 1] = value
  end
  return found
end
