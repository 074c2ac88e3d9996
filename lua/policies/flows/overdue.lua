--- Whether jobs are noted that are to end. A key of another type is met here, where nothing is changed yet.
local function flows_overdue(base)
  return redis.call('HLEN', base .. 'stops') > 0
end
