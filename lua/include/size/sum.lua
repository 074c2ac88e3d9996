--- How many bytes each of these jobs has, as it is noted; false where it does not count.
local function size_sum_each(base, ids)
  return #ids == 0 and {} or redis.call('HMGET', base .. 'sizes', unpack(ids))
end

--- How many bytes those of them have that count.
local function size_sum(base, ids)
  local sum = 0
  for _, known in ipairs(size_sum_each(base, ids)) do sum = sum + (tonumber(known) or 0) end
  return sum
end
