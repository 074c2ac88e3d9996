--- Add to a counter, a field of a hash. One that is no number begins anew: no step stops half way for the sake of a
--- number that something else has spoilt.
local function count_up(key, field, by)
  local count = redis.pcall('HINCRBY', key, field, by)
  if type(count) ~= 'table' then return count end
  redis.call('HSET', key, field, by)
  return by
end
