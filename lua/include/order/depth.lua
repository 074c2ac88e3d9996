--- How many jobs no consumer has: ready, behind others of their groups, or scheduled. Each place says how long it is, so
--- the number is exact and nobody has to keep it (X-16). `levels`, `marked`, `blocked`: fields of `meta`.
local function depth_count(base, levels, marked, blocked)
  local total = redis.call('ZCARD', base .. 'scheduled') + (tonumber(blocked) or 0)
    - (tonumber(marked) or 0)
  for level in string.gmatch(levels or '', '%d+') do
    total = total + redis.call('LLEN', base .. 'ready:' .. level) + redis.call('LLEN', base .. 'due:' .. level)
  end
  --- @if heads
  local heads
  --- @each heads = heads(base)
  for _, key in ipairs(heads) do total = total + redis.call('ZCARD', key) end
  --- @end
  return total
end

--- The same with the jobs that consumers hold: all that have a value, but for dead letters and cancelled elements.
local function depth_live(base, marked)
  return redis.call('HLEN', base .. 'jobs') - redis.call('ZCARD', base .. 'dead') - (tonumber(marked) or 0)
end
