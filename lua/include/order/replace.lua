--- @include "order/search"
--- @one rank

--- Take the element of a job that lives on out of the middle of its list. Others search there by position, so a mark
--- takes its place, under a name that no job can have: a mark under the job's own name would say that it ended. The
--- caller counts it in `marked`.

--- `near`: the index where it may be, nil: anywhere. False where the job does not stand at its place.
local function order_replace(base, job, near)
  local key = rank(base, job)
  local index = order_search(base, key, job, near)
  if redis.call('LINDEX', key, index) ~= job.id then return false end
  local stand_in = string.format('\1%d,%d', job.position, job.due)
  redis.call('HSET', base .. 'jobs', stand_in, string.format('!%d,%d', job.position, job.due))
  redis.call('LSET', key, index, stand_in)
  return true
end
