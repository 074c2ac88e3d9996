--- @include "order"

--- Index of the first element of a list that does not stand before {due=, position=}, and the length of the list: a
--- binary search, as lists are sorted.
local function place_index(base, key, job)
  local length = redis.call('LLEN', key)
  local low, high = 0, length
  while low < high do
    local middle = math.floor((low + high) / 2)
    local other = order_read(redis.call('HGET', base .. 'jobs', redis.call('LINDEX', key, middle)))
    if not other or order_before(other, job) then low = middle + 1 else high = middle end
  end
  return low, length
end
