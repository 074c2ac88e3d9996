--- @include "seat"
--- @include "value"
--- @include "place"

--- Due jobs that do not go to the head go their way. Returns the seats of the others.
local function promote_apart(base, seats)
  local meta, ids, rest, parked = base .. 'meta', {}, {}, {}
  for i, seat in ipairs(seats) do ids[i] = string.sub(seat, SEAT + 1) end
  local seated = redis.call('HMGET', base .. 'seated', unpack(ids))
  for i, id in ipairs(ids) do
    if not seated[i] then
      rest[#rest + 1] = seats[i]
    else
      local value = redis.call('HGET', base .. 'jobs', id)
      local job = value and value_parse(value)
      redis.call('HDEL', base .. 'seated', id)
      redis.call('HDEL', base .. 'parked', id)
      if job and seated[i] == 'tail' then
        job.position, job.due = redis.call('HINCRBY', meta, 'seq', 1), 0
        redis.call('HINCRBY', meta, 'tailed', 1)
        redis.call('HSET', base .. 'jobs', id, value_header(job) .. job.envelope)
        redis.call('RPUSH', base .. 'ready:' .. job.level, id)
      elseif job then
        job.id = id
        parked[#parked + 1] = job
      end
    end
  end
  if #parked > 0 then place_back(base, parked) end
  return rest
end
