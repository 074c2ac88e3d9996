--- The lists of a level: those that were due in it go before the others, so they are the last one here. `promoted`: whether
--- the queue ever had such jobs.
local function lists_of(base, level, promoted)
  return { base .. 'ready:' .. level, promoted and base .. 'due:' .. level or nil }
end

--- The levels that the queue has ever used ("9,4").
local function lists_levels(base)
  return redis.call('HGET', base .. 'meta', 'levels') or ''
end
