--- @hooks gone

--- The end of a step after which the queue may be empty that its last consumer has left.
local function lifetime_vacated(base)
  if redis.call('HGET', base .. 'meta', 'had_consumer') == 'l' then lifetime_gone(base) end
end
