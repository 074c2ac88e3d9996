--- @include "queue/count"
--- @include "schedule/member"
--- @include "job/value"
--- @include "order/reinsert"
--- @include "finish/dead_letter"
--- @include "result/records"
--- @include "history/lines"
--- @hooks shelf

--- Due jobs that do not go to the head go their way. Returns the members of the others.
local function promote_special(base, queue, members)
  local meta, ids, rest, back = base .. 'meta', {}, {}, {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, MEMBER_PREFIX + 1) end
  local special = redis.call('HMGET', base .. 'returns_to', unpack(ids))
  for i, id in ipairs(ids) do
    if not special[i] then
      rest[#rest + 1] = members[i]
    else
      local value = redis.call('HGET', base .. 'jobs', id)
      local job = value and value_parse(value)
      redis.call('HDEL', base .. 'returns_to', id)
      redis.call('HDEL', base .. 'parked', id)
      if job and job.damaged then
        job.id = id
        local cause = dead_letter_undecodable(queue.now)
        records_write(base, queue, { id, dead_letter_store(base, queue.now, job, cause) })
        history_lines_write(base, queue.history_max, { history_lines_row(id, job, 'dead', queue.now, '', cause) })
      elseif job and special[i] == 'tail' and string.find(redis.call('HGET', meta, 'seq') or '', '^%d+$') then
        job.position, job.due = redis.call('HINCRBY', meta, 'seq', 1), 0
        count_up(meta, 'tailed', 1)
        redis.call('HSET', base .. 'jobs', id, value_header(job) .. job.envelope)
        --- @if shelf
        job.id = id
        local others = { job }
        --- @each others = shelf(base, queue, others)
        if not others[1] then job = nil end
        --- @end
        if job then redis.call('RPUSH', base .. 'ready:' .. job.level, id) end
      elseif job then
        job.id = id
        back[#back + 1] = job
      end
    end
  end
  if #back > 0 then reinsert_jobs(base, queue, back) end
  return rest
end
