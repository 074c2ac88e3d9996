--- Elements in the waiting lists, cancelled ones that no head has passed yet included.
local function waiting_count(base, levels)
  local total = 0
  for level in string.gmatch(levels or '', '%d+') do
    total = total + redis.call('LLEN', base .. 'ready:' .. level) + redis.call('LLEN', base .. 'due:' .. level)
  end
  --- @if heads
  local heads
  --- @each heads = heads(base, nil, { mine = true })
  if not heads.lists then total = 0 end
  for _, key in ipairs(heads) do total = total + redis.call('ZCARD', key) end
  --- @end
  return total
end
