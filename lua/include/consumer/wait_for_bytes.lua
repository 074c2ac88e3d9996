--- @include "consumer/lists"

--- Consumers whose bytes do not suffice for the job at the head wait for that very job (QPID-1187): they are notified
--- when it is gone. `byte_waiters` holds job id -> consumers, one per line; it exists only while a consumer waits so.

local function wait_for_bytes(base, id, consumer)
  local others = redis.call('HGET', base .. 'byte_waiters', id)
  if others then
    if string.find('\n' .. others .. '\n', '\n' .. consumer .. '\n', 1, true) then return end
    consumer = others .. '\n' .. consumer
  end
  redis.call('HSET', base .. 'byte_waiters', id, consumer)
end

--- These jobs are gone from the head: a consumer that waited for one of them is notified, so that it looks again,
--- unless it has no credit left or is the `taker`, which is looking right now.
local function wait_for_bytes_over(base, now, ids, taker)
  if #ids == 0 or redis.call('EXISTS', base .. 'byte_waiters') == 0 then return end
  local waiting = redis.call('HMGET', base .. 'byte_waiters', unpack(ids))
  for index, names in ipairs(waiting) do
    if names then
      redis.call('HDEL', base .. 'byte_waiters', ids[index])
      for name in string.gmatch(names, '[^\n]+') do
        local row = redis.call('HMGET', base .. 'consumer:' .. name, 'state', 'jobs')
        if name ~= taker and row[1] == 'not_interested'
          and (tonumber(row[2]) or 0) > redis.call('LLEN', base .. 'held:' .. name) then
          consumer_lists_move(base, now, name, 'not_interested', 'notified')
          redis.call('RPUSH', base .. 'wake:' .. name, 'w')
        end
      end
    end
  end
end
