--- Every arrival wakes every browser; one unread wake-up is enough.
local function browsers_tell(base)
  for _, name in ipairs(redis.call('SMEMBERS', base .. 'browsers')) do
    local wake = base .. 'wake:' .. name
    if redis.call('LLEN', wake) == 0 then redis.call('RPUSH', wake, 'w') end
  end
end
