--- @include "order/depth"

--- The bound of a queue, and what is there.

--- The percentage of the limit to which a queue falls before producers that wait are notified.
local LOOK_RESUME = 80

--- {most=, blocks=, count=, granted=, mark=}; most and mark are endless where nothing bounds the queue.
local function room_look(base)
  local row = redis.call('HMGET', base .. 'meta', 'max_jobs', 'overflow', 'count_held', 'granted', 'marked', 'levels',
    'blocked', 'resume')
  local look = { most = tonumber(row[1]) or 0, blocks = row[2] == '1', granted = tonumber(row[4]) or 0 }
  if look.most == 0 then
    look.most, look.mark, look.count = math.huge, math.huge, 0
    return look
  end
  look.mark = math.floor(look.most * (tonumber(row[8]) or LOOK_RESUME) / 100)
  if row[3] == '1' then
    look.count = depth_live(base, row[5])
  else
    look.count = depth_count(base, row[6] or '', row[5], row[7])
  end
  return look
end
