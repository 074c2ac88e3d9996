--- A queue has schedules now: its consumers look at ticks from now on, within the rest of their leases.
local function looked_from_now(base, now)
  local last = redis.call('ZREVRANGE', base .. 'consumers', '0', '0', 'WITHSCORES')[2]
  if last and tonumber(last) > now then
    redis.call('HSETNX', base .. 'meta', 'looked', string.format('%d,%d', now, tonumber(last) - now))
  end
end
