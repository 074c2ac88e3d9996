--- @hooks fires
--- @hooks fire

--- Ticks are due although nobody pulls. `taker`: the consumer that looks for work now, which has looked for them itself.
--- True where there are more.
local function schedules_upkeep(base, queue, taker)
  if taker or queue.paused then return false end
  local found = schedules_fires(base, queue)
  if not found then return false end
  schedules_fire(base, queue, found)
  return redis.call('ZCOUNT', base .. 'ticks', '-inf', string.format('%d', queue.now)) > 0
end
