--- A queue has schedules now: whoever consumes from it looks from now on, within what is left of the lease.
local function looked_from_now(base, now)
  local last = redis.call('ZREVRANGE', base .. 'consumers', '0', '0', 'WITHSCORES')[2]
  if last and tonumber(last) > now then
    redis.call('HSETNX', base .. 'meta', 'looked', string.format('%d,%d', now, tonumber(last) - now))
  end
end
