--- @include "queue/count"
--- @include "job/value"
--- @include "order/replace"
--- @include "finish/dead_letter"
--- @include "result/records"
--- @include "history/lines"
--- @include "consumer/wait_for_bytes"

--- Why an expired job is a dead letter.
local function ttl_dropped_cause(now, job)
  return cjson.encode({ kind = 'expired', type = 'JobExpired', at = now, attempt = job.attempts,
    message = 'its time to live ended before it was delivered' })
end

--- Jobs {id, value, ...} whose time to live is over end, or become dead letters where the queue wants that. `how`
--- = {lines=, waiting=, taker=}: where their rows of history go, nil: to the history; whether they stand in their
--- places, else in none; the consumer that looks for work now. `queue.opened` counts those that others made way for.
local function ttl_dropped(base, queue, jobs, how)
  if #jobs == 0 then return end
  local jobs_key, rows, records, ids, marks, waiting =
    base .. 'jobs', how.lines or {}, {}, {}, 0, how.waiting
  --- @if pass
  local gone = {}
  --- @end
  local kept_dead = redis.call('HGET', base .. 'meta', 'ttl_dead') == '1'
  for i = 1, #jobs, 2 do
    local id, job = jobs[i], value_parse(jobs[i + 1])
    job.id = id
    ids[#ids + 1] = id
    redis.call('ZREM', base .. 'expiring', id)
    local dead, cause, listed = kept_dead or job.damaged, nil, waiting
    -- a job that lives on, here or elsewhere, leaves nothing of its id in a list
    local lives = dead
    --- @if route
    local target
    --- @each target = route(base, job, 'expired')
    dead, lives = dead and not target, dead or target
    --- @end
    --- @if unblock
    if waiting then
      local placed
      --- @each placed = unblock(base, queue, job)
      listed = not placed
    end
    --- @end
    if not lives or not listed or order_replace(base, job, 0) then
      if listed then marks = marks + 1 end
      --- @if pass
      gone[#gone + 1] = job
      --- @end
      if dead then
        cause = job.damaged and dead_letter_undecodable(queue.now) or ttl_dropped_cause(queue.now, job)
        records[#records + 1] = id
        records[#records + 1] = dead_letter_store(base, queue.now, job, cause)
      else
        redis.call('HDEL', base .. 'errors', id)
        if listed and not lives then
          redis.call('HSET', jobs_key, id, string.format('!%d,%d', job.position, job.due))
        else
          redis.call('HDEL', jobs_key, id)
        end
        records[#records + 1] = id
        records[#records + 1] = string.format('E%d:', queue.now)
        --- @if route
        if target then
          --- @include "outgoing/move"
          outgoing_move(base, queue.now, job, target, 'expired', ttl_dropped_cause(queue.now, job))
        end
        --- @end
      end
      rows[#rows + 1] = history_lines_row(id, job, 'expired', queue.now, '', cause)
    end
  end
  if not waiting then
    redis.call('HDEL', base .. 'parked', unpack(ids))
    redis.call('HDEL', base .. 'returns_to', unpack(ids))
  end
  if marks > 0 then count_up(base .. 'meta', 'marked', marks) end
  if #records > 0 then count_up(base .. 'meta', 'expired', #records / 2) end
  records_write(base, queue, records)
  if not how.lines then history_lines_write(base, queue.history_max, rows) end
  wait_for_bytes_over(base, queue.now, ids, how.taker)
  --- @each pass(base, queue, gone)
end
