--- @include "consumer/notify_opened"
--- @hooks delayed

--- Limits whose waiting jobs are looked at again in one go.
local LIMITS_AGAIN = 1000

--- From now on a limit allows so many; `most` = "": what its jobs say. Who waits for it, or for one of its keys, may get
--- a permit by that.
local function limits_allow(base, queue, limit, most)
  if most == '' then
    redis.call('HDEL', base .. 'limits', limit)
  else
    redis.call('HSET', base .. 'limits', limit, most)
  end
  local at = 0
  while true do
    local some = redis.call('ZRANGEBYLEX', base .. 'blocked', '[' .. limit, '[' .. limit .. '=\255', 'LIMIT', at,
      LIMITS_AGAIN)
    local mine = {}
    for _, name in ipairs(some) do
      if name == limit or string.sub(name, 1, #limit + 1) == limit .. '=' then mine[#mine + 1] = name end
    end
    if #mine > 0 then redis.call('SADD', base .. 'reopened', unpack(mine)) end
    if #some < LIMITS_AGAIN then break end
    at = at + LIMITS_AGAIN
  end
  local limits = limits_reopened(base, '64')
  if #limits == 0 then return end
  limits_open(base, queue, limits)
  notify_opened(base, queue)
end
