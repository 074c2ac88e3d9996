--- @include "consumer/notify_opened"
--- @hooks delayed

--- Permits that limits have and nobody was offered yet go to jobs that wait for them, a page in each call. True where
--- there are more. `taker`: the consumer that looks for work now, which looks itself for what became ready.
local function limits_upkeep(base, queue, taker)
  local limits = redis.call('SPOP', base .. 'reopened', '16')
  if #limits == 0 then return false end
  local opened = queue.opened
  queue.opened = 0
  limits_open(base, queue, limits)
  if not taker then notify_opened(base, queue) end
  queue.opened = opened
  return redis.call('EXISTS', base .. 'reopened') == 1
end
