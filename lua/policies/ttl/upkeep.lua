--- @hooks eligible
--- @hooks dropped

--- Jobs that one call looks at: fewer where each has to be found in its list.
local TTL_SWEPT, TTL_SWEPT_DEAD = '64', '16'

--- Jobs that wait and whose time to live is over go, a few in each call, also while nobody pulls. True where there are
--- more. `taker`: the consumer that looks for work now.
local function ttl_upkeep(base, queue, taker)
  local most = redis.call('HGET', base .. 'meta', 'ttl_dead') == '1' and TTL_SWEPT_DEAD or TTL_SWEPT
  local before = string.format('(%d', queue.now)
  local ids = redis.call('ZRANGEBYSCORE', base .. 'expiring', '-inf', before, 'LIMIT', '0', most)
  if #ids == 0 then return false end
  local late, strays = {}, {}
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
    if value and ttl_eligible(value, queue.now) then
      late[#late + 1] = ids[i]
      late[#late + 1] = value
    else
      strays[#strays + 1] = ids[i]
    end
  end
  if #strays > 0 then redis.call('ZREM', base .. 'expiring', unpack(strays)) end
  ttl_dropped(base, queue, late, { waiting = true, taker = taker })
  return #ids == tonumber(most)
end
