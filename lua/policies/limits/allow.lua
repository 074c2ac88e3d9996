--- @include "consumer/notify_opened"
--- @hooks delayed

--- Limits whose waiting jobs are looked at again in one go.
local LIMITS_AGAIN = 1000

--- From now on a limit allows so many; `most` = "": what its jobs say. Who waits for it may get a permit by that.
--- `limit`: "<name>=*" for all keys of which nothing is said.
local function limits_allow(base, queue, limit, most)
  if most == '' then
    redis.call('HDEL', base .. 'limits', limit)
  else
    redis.call('HSET', base .. 'limits', limit, most)
  end
  local from, to, at = '[' .. limit, '[' .. limit, 0
  if string.sub(limit, -2) == '=*' then
    from = string.sub(from, 1, -2)
    to = from .. '\255'
  end
  while true do
    local some = redis.call('ZRANGEBYLEX', base .. 'blocked', from, to, 'LIMIT', at, LIMITS_AGAIN)
    if #some > 0 then redis.call('SADD', base .. 'reopened', unpack(some)) end
    if #some < LIMITS_AGAIN then break end
    at = at + LIMITS_AGAIN
  end
  local limits = limits_reopened(base, '64')
  if #limits == 0 then return end
  limits_open(base, queue, limits)
  notify_opened(base, queue)
end
