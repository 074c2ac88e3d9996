--- @include "consumer/notify_opened"
--- @hooks delayed

--- Permits that limits have and nobody was offered yet go to jobs that wait for them, a page in each call; so do tokens
--- that are due. True where there are more. `taker`: the consumer that looks for work now, which looks itself for what
--- became ready.
local function limits_upkeep(base, queue, taker)
  local limits = limits_reopened(base, '16')
  local due = redis.call('ZRANGEBYSCORE', base .. 'tokens_due', '-inf', string.format('%d', queue.now), 'LIMIT', '0',
    LIMITS_PAGE)
  if #due > 0 then redis.call('ZREM', base .. 'tokens_due', unpack(due)) end
  for _, rate in ipairs(due) do limits[#limits + 1] = rate end
  if #limits == 0 then return false end
  local opened = queue.opened
  queue.opened = 0
  limits_open(base, queue, limits)
  if not taker then notify_opened(base, queue) end
  queue.opened = opened
  return redis.call('EXISTS', base .. 'reopened') == 1
end
