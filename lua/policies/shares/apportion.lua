--- @hooks strand

--- From its next delivery on a share has this weight; "" = that of all others. `name` "*": all of which nothing is said.
local function shares_apportion(base, name, weight)
  if weight == '' then
    redis.call('HDEL', base .. 'weights', name)
  else
    redis.call('HSET', base .. 'weights', name, weight)
  end
end
