--- Since when a pool has been there, ms: it looked then, and its lease has not ended. nil if none is there.
local function attended_since(base, now)
  local looked, lease = string.match(redis.call('HGET', base .. 'meta', 'looked') or '', '^(%d+),(%d+)$')
  if looked and now - looked <= tonumber(lease) then return tonumber(looked) end
end
