--- @include "history/undone"

--- A settle that met a key of another type is undone.

--- `ids`: jobs that were at the head of the consumer's list, in this order. `ended`, `entry`: what the commands answered
--- that wrote their records and their rows, nil where they were not sent.
local function undone_settle(base, consumer, ids, ended, entry)
  if type(entry) == 'string' then history_undone(base, entry) end
  if type(ended) == 'number' then redis.call('HDEL', base .. 'ended', unpack(ids)) end
  local back = {}
  for i = #ids, 1, -1 do back[#back + 1] = ids[i] end
  if #back > 0 then redis.call('LPUSH', base .. 'held:' .. consumer, unpack(back)) end
end
