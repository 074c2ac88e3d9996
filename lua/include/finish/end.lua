--- @include "job/value"
--- @include "result/records"
--- @include "history/lines"
--- @include "consumer/wait_for_bytes"

--- End jobs that no worker will run: `ids` are off their lists already. `letter` of the record, `outcome` of the row,
--- `worker`: of the consumer that held them, if one did.
--- `queue.taker`: the consumer that looks for work now.
local function end_jobs(base, queue, ids, letter, outcome, worker)
  if #ids == 0 then return 0 end
  local values = redis.call('HMGET', base .. 'jobs', unpack(ids))
  redis.call('HDEL', base .. 'jobs', unpack(ids))
  redis.call('HDEL', base .. 'parked', unpack(ids))
  redis.call('HDEL', base .. 'returns_to', unpack(ids))
  redis.call('HDEL', base .. 'errors', unpack(ids))
  --- @each left(base, ids)
  local records, lines, marked = {}, {}, 0
  --- @if pass
  local gone = {}
  --- @end
  for i, id in ipairs(ids) do
    local value = values[i]
    if value and string.byte(value) == 33 then
      marked = marked + 1
    elseif value then
      local job = value_parse(value)
      --- @if pass
      job.id = id
      gone[#gone + 1] = job
      --- @end
      records[#records + 1] = id
      records[#records + 1] = string.format('%s%d:', letter, queue.now)
      lines[#lines + 1] = history_lines_row(id, job, outcome, queue.now, worker)
    end
  end
  if marked > 0 then redis.call('HINCRBY', base .. 'meta', 'marked', -marked) end
  if #lines > 0 then redis.call('HINCRBY', base .. 'meta', outcome, #lines) end
  records_write(base, queue, records)
  history_lines_write(base, queue.history_max, lines)
  wait_for_bytes_over(base, queue.now, ids, queue.taker)
  --- @if pass
  --- @include "consumer/notify_opened"
  --- @each pass(base, queue, gone)
  notify_opened(base, queue)
  --- @end
  --- @each vacated(base, { now = queue.now })
  return #lines
end
