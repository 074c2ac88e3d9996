--- @include "queue/all_keys"

--- A job or a consumer has come: the queue stays.
local function lifetime_stays(base)
  if redis.call('HGET', base .. 'meta', 'had_consumer') == 'g' then redis.call('HDEL', base .. 'meta', 'had_consumer') end
  if redis.call('PTTL', base .. 'meta') < 0 then return end
  for _, key in ipairs(all_keys(base, nil, true)) do redis.call('PERSIST', key) end
end
