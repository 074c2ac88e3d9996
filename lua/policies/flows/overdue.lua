--- Whether jobs are noted that are to end. A key of another type is met here, where nothing is changed yet. `queue`: where
--- a settle has looked at that already.
local function flows_overdue(base, _, queue)
  local waits = queue and queue.waits
  if waits == false or waits == 'derived' then return false end
  return redis.call('HLEN', base .. 'stops') > 0
end
