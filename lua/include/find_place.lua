--- @include "value"

--- Where a job waits: its list is known by its header, its index by a binary search, as the lists are sorted.

--- Position in a stored value or mark; nil where there is none.
local function place_position(value)
  return value and tonumber(string.match(value, '^!?(-?%d+)'))
end

local function place_key(base, level, position)
  return base .. (position < 0 and 'due:' or 'ready:') .. level
end

--- Index of the first element whose position is not below `position`, and the length of the list.
local function place_index(base, key, position)
  local length = redis.call('LLEN', key)
  local low, high = 0, length
  while low < high do
    local middle = math.floor((low + high) / 2)
    local other = place_position(redis.call('HGET', base .. 'jobs', redis.call('LINDEX', key, middle)))
    if (other or -math.huge) < position then low = middle + 1 else high = middle end
  end
  return low, length
end
