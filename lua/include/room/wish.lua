--- For how many jobs this producer waits, or has a grant.
local function room_wish(base, producer)
  local wish = redis.call('HGET', base .. 'wishes', producer)
  return tonumber(string.match(wish or '', '^(%d+),')) or 0
end
