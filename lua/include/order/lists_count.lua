--- Elements in the lists of all levels in use.
local function lists_count(base)
  local total = 0
  for level in string.gmatch(redis.call('HGET', base .. 'meta', 'levels') or '', '%d+') do
    total = total + redis.call('LLEN', base .. 'ready:' .. level) + redis.call('LLEN', base .. 'due:' .. level)
  end
  return total
end
