--- @include "count"
--- @include "seat"
--- @include "value"
--- @include "place"
--- @include "bury"
--- @include "records"
--- @include "history_lines"

--- Due jobs that do not go to the head go their way. Returns the seats of the others.
local function promote_apart(base, queue, seats)
  local meta, ids, rest, back = base .. 'meta', {}, {}, {}
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
      if job and job.damaged then
        job.id = id
        local cause = bury_damaged(queue.now)
        records_write(base, queue, { id, bury_job(base, queue.now, job, cause) })
        history_lines(base, queue.history_max, { history_line(id, job, 'dead', queue.now, '', cause) })
      elseif job and seated[i] == 'tail' and string.find(redis.call('HGET', meta, 'seq') or '', '^%d+$') then
        job.position, job.due = redis.call('HINCRBY', meta, 'seq', 1), 0
        count_up(meta, 'tailed', 1)
        redis.call('HSET', base .. 'jobs', id, value_header(job) .. job.envelope)
        redis.call('RPUSH', base .. 'ready:' .. job.level, id)
      elseif job then
        job.id = id
        back[#back + 1] = job
      end
    end
  end
  if #back > 0 then place_back(base, back) end
  return rest
end
