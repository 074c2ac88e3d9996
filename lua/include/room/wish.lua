--- For how many jobs, and bytes, this producer waits, or has a grant.
local function room_wish(base, producer)
  local jobs, _, bytes = string.match(redis.call('HGET', base .. 'wishes', producer) or '', '^(%d+),(%d*),?(%d*)')
  return tonumber(jobs) or 0, tonumber(bytes) or 0
end
