--- @hooks eligible
--- @hooks swept
--- @hooks dropped
--- @if pass
--- @include "consumer/notify_opened"
--- @end

--- Jobs that wait and whose time to live is over go, a few in each call, also while nobody pulls. True where there are
--- more. `taker`: the consumer that looks for work now, which looks itself for what others made way for.
local function ttl_upkeep(base, queue, taker)
  local ids, most = ttl_swept_ids(base, queue.now)
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
  --- @if pass
  local opened = queue.opened
  queue.opened = 0
  --- @end
  ttl_dropped(base, queue, late, { waiting = true, taker = taker })
  --- @if pass
  if not taker then notify_opened(base, queue) end
  queue.opened = opened
  --- @end
  return #ids == tonumber(most)
end
