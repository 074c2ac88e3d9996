--- Whether a period is over. A key of another type is met here, where nothing is changed yet.
local function unique_overdue(base, now)
  redis.call('HLEN', base .. 'unique')
  return redis.call('ZCOUNT', base .. 'periods', '-inf', string.format('%d', now)) > 0
end
