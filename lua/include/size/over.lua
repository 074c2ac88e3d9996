--- @include "queue/count"
--- @include "size/again"

--- These jobs do not count any more, where they did. Returns how many bytes less that is.
local function size_over(base, ids)
  if #ids == 0 then return 0 end
  local seen, less, again, there = {}, 0, 0, false
  for i, known in ipairs(redis.call('HMGET', base .. 'sizes', unpack(ids))) do
    if known and not seen[ids[i]] then
      seen[ids[i]], there = true, true
      less = less + (tonumber(known) or 0)
      if size_again(known) then again = again + (tonumber(known) or 0) end
    end
  end
  if not there then return 0 end
  redis.call('HDEL', base .. 'sizes', unpack(ids))
  if less ~= 0 then count_up(base .. 'meta', 'waiting_bytes', string.format('%d', -less)) end
  if again > 0 and redis.call('HEXISTS', base .. 'meta', 'recounted') == 1 then
    count_up(base .. 'meta', 'recounted', string.format('%d', -again))
  end
  return less
end
