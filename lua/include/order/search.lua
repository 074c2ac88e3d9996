--- @include "order/sort_key"

--- Index of the first element of a list that does not stand before {due=, position=}, and the length of the list: a
--- binary search, as lists are sorted. `near`: where it may be; the search begins there, since Redis walks a long list
--- from its end to every index that is asked for.
local function order_search(base, key, job, near)
  local length = redis.call('LLEN', key)
  local low, high = 0, length
  local function behind(index)
    local other = sort_key_read(redis.call('HGET', base .. 'jobs', redis.call('LINDEX', key, index)))
    return not other or sort_key_before(other, job)
  end
  if near then
    local step = 1
    near = math.min(near, length)
    while near < high and behind(near) do
      low, near, step = near + 1, near + step, 2 * step
    end
    if near < high then high = near end
    near = high - 1
    step = 1
    while near >= low and not behind(near) do
      high, near, step = near, near - step, 2 * step
    end
    if near >= low then low = near + 1 end
  end
  while low < high do
    local middle = math.floor((low + high) / 2)
    if behind(middle) then low = middle + 1 else high = middle end
  end
  return low, length
end
