--- @include "queue/count"
--- @include "room/look"
--- @include "room/wish"

--- Room that is kept for producers that waited.

--- How many producers one call tells, and the index of the last of them; how long a grant lasts, ms.
local GRANTS_MOST, GRANTS_LAST, GRANTS_MS = 32, '31', 5000

--- Its grant is over, used or not.
local function grants_over(base, producer)
  if redis.call('ZREM', base .. 'grants', producer) == 0 then return end
  local jobs, bytes = room_wish(base, producer)
  count_up(base .. 'meta', 'granted', -jobs)
  if bytes > 0 then count_up(base .. 'meta', 'granted_bytes', string.format('%d', -bytes)) end
  redis.call('HDEL', base .. 'wishes', producer)
  redis.call('DEL', base .. 'room:' .. producer)
end

local function grants_tell(base, producer)
  local room = base .. 'room:' .. producer
  -- whatever stood there: only this producer reads it
  redis.call('DEL', room)
  redis.call('RPUSH', room, 'w')
  redis.call('PEXPIRE', room, string.format('%d', GRANTS_MS))
end

--- The end of a step after which there may be room: grants past their deadline are over, and the first of those that wait
--- get one while they fit. `queue` = {now=, used=}: whose grant this step has used.
local function grants_give(base, queue)
  if queue.used then grants_over(base, queue.used) end
  if redis.call('EXISTS', base .. 'producers', base .. 'grants') == 0 then return end
  local now = string.format('%d', queue.now)
  for _, producer in ipairs(redis.call('ZRANGEBYSCORE', base .. 'grants', '-inf', '(' .. now, 'LIMIT', '0', GRANTS_MOST)) do
    grants_over(base, producer)
  end
  local first = redis.call('ZRANGE', base .. 'producers', '0', GRANTS_LAST)
  if #first == 0 then return end
  local look, wishes = room_look(base), redis.call('HMGET', base .. 'wishes', unpack(first))
  local open = look.blocks and look.count <= look.mark and look.bytes <= look.mark_bytes
  local free, deadline = look.most - look.count - look.granted, string.format('%d', queue.now + GRANTS_MS)
  local free_bytes = look.most_bytes - look.bytes - look.granted_bytes
  local away, over, grants, jobs, bytes = {}, {}, {}, 0, 0
  for i, producer in ipairs(first) do
    local wish, until_, size = string.match(wishes[i] or '', '^(%d+),(%d+),?(%d*)$')
    wish, size = tonumber(wish), tonumber(size) or 0
    if not wish or tonumber(until_) < queue.now then
      -- it died, or is gone without a word
      over[#over + 1] = producer
    elseif not look.blocks or not look.bounded or wish > look.most or size > look.most_bytes then
      -- it would wait for ever: what it enqueues next says so
      over[#over + 1] = producer
      grants_tell(base, producer)
    elseif open and wish <= free and size <= free_bytes then
      free, jobs, free_bytes, bytes = free - wish, jobs + wish, free_bytes - size, bytes + size
      grants[#grants + 1] = deadline
      grants[#grants + 1] = producer
      grants_tell(base, producer)
    else
      break
    end
    away[#away + 1] = producer
  end
  if #away == 0 then return end
  redis.call('ZREM', base .. 'producers', unpack(away))
  if #over > 0 then redis.call('HDEL', base .. 'wishes', unpack(over)) end
  if #grants > 0 then
    redis.call('ZADD', base .. 'grants', unpack(grants))
    count_up(base .. 'meta', 'granted', jobs)
    if bytes > 0 then count_up(base .. 'meta', 'granted_bytes', string.format('%d', bytes)) end
  end
end
