--- @include "order/depth"

--- The bound of a queue, and what is there.

--- The percentage of the limit to which a queue falls before producers that wait are notified.
local LOOK_RESUME = 80

--- {most=, blocks=, count=, granted=, mark=}, and the same in bytes: {most_bytes=, bytes=, granted_bytes=, mark_bytes=};
--- most and mark are endless where that is not bounded. `bounded`: whether anything is. `plan`: of an enqueue.
local function room_look(base, plan)
  local row = redis.call('HMGET', base .. 'meta', 'max_jobs', 'overflow', 'count_held', 'granted', 'marked', 'levels',
    'blocked', 'resume', 'granted_bytes')
  local most, resume = tonumber(row[1]) or 0, tonumber(row[8]) or LOOK_RESUME
  local look = { most = most > 0 and most or math.huge, blocks = row[2] == '1', granted = tonumber(row[4]) or 0,
    most_bytes = math.huge, bytes = 0, granted_bytes = tonumber(row[9]) or 0, gone_bytes = 0, count = 0 }
  --- @each weight(base, look, plan)
  look.bounded = look.most < math.huge or look.most_bytes < math.huge
  look.mark, look.mark_bytes = math.floor(look.most * resume / 100), math.floor(look.most_bytes * resume / 100)
  if not look.bounded then return look end
  if row[3] == '1' then
    look.count = depth_live(base, row[5])
  else
    look.count = depth_count(base, row[6] or '', row[5], row[7])
  end
  return look
end
