--- Say what became of jobs that a consumer holds, and pull the next ones, in one step.
--- KEYS: meta, guard
--- ARGV: consumer, term, jobs, bytes, freed, batch, rows, groups, items...
---   jobs, bytes: the consumer's whole window after this call (bytes 0: no limit); jobs "-1": settle only, no pull
---   freed: bytes of the settled jobs' values; batch, rows: packed history rows of the items, in their order
---   groups: "<ack>" or "<ack>,<done>,<retry>,<reject>,<release>": counts of items, in this order:
---   ack: id | done: id, keep ms ("" = the queue's), result | retry: id, delay ms, place (old, head, tail, park, aside),
---   charge, how often it was delivered before this time ("" = not said), error | reject: id, cause | release: id
--- REPLY: {now, state, timer, {ids refused because this consumer does not hold them}, behind, id, value, ...}
---   timer: ms until the next due job where this consumer is to watch it, else -1
---   behind: the id that this consumer held last before the new ones, "" where there is none (X-25)
--- ERRORS: BADARGS | DAMAGED | GONE | SCHEMA
--- @include "queue/row"
--- @include "consumer/row"

local meta = KEYS[1]
local consumer = ARGV[1]
local term = ARGV[2]
local jobs = ARGV[3]
local bytes = ARGV[4]
local freed = ARGV[5]
local batch = ARGV[6]
local rows = ARGV[7]
local groups = ARGV[8]
local FIRST = 9

local base = string.sub(meta, 1, -5)
local row, mine = queue_row(base), consumer_row(base, consumer)
if groups == '1' or groups == '0,1,0,0,0' then
  --- @include "settle/fast_path"
  local reply = settle_fast_path(base, row, consumer, mine, ARGV)
  if reply then return reply end
end

--- @include "queue/open"
--- @include "consumer/open"
--- @include "consumer/window"
--- @include "held/take_in_order"
--- @include "result/records"
--- @include "history/batch"
--- @include "pull/pull"
local queue, failure = queue_open(base, row)
if not queue then return failure end
local me
me, failure = consumer_open(base, consumer, term, mine)
if not me then return failure end

if me.browses then return redis.error_reply('BADARGS settle: a browser holds nothing') end

local n_ack, n_done, n_retry, n_reject, n_release = tonumber(groups), 0, 0, 0, 0
if not n_ack then
  n_ack, n_done, n_retry, n_reject, n_release = string.match(groups, '^(%d+),(%d+),(%d+),(%d+),(%d+)$')
  n_ack, n_done, n_retry = tonumber(n_ack), tonumber(n_done), tonumber(n_retry)
  n_reject, n_release = tonumber(n_reject), tonumber(n_release)
end
if not (n_ack and tonumber(jobs) and tonumber(bytes) and tonumber(freed) and tonumber(rows))
  or #ARGV ~= FIRST - 1 + n_ack + 3 * n_done + 6 * n_retry + 2 * n_reject + n_release then
  return redis.error_reply('BADARGS settle: the arguments do not fit the groups ' .. groups)
end
local total = n_ack + n_done + n_retry + n_reject + n_release
if total > 1000 then return redis.error_reply('BADARGS settle takes at most 1000 jobs in one call') end

-- the ids in their order, and where each group begins in ARGV
local ids = {}
for i = 1, n_ack do ids[i] = ARGV[FIRST - 1 + i] end
local at_done = FIRST + n_ack
local at_retry = at_done + 3 * n_done
local at_reject = at_retry + 6 * n_retry
local at_release = at_reject + 2 * n_reject
for at = at_done, at_retry - 1, 3 do ids[#ids + 1] = ARGV[at] end
local earlier, tail = false, false
for at = at_retry, at_reject - 1, 6 do
  local id, delay, place, before = ARGV[at], tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 4]
  ids[#ids + 1] = id
  if not delay or not (place == 'old' or place == 'head' or place == 'tail' or (place == 'park' or place == 'aside') and delay > 0)
    or before ~= '' and not tonumber(before) then
    return redis.error_reply('BADARGS settle: a retry needs a delay in ms, a place and a number of deliveries')
  end
  tail = tail or place == 'tail' and delay <= 0
  if before ~= '' then
    --- @include "job/value"
    -- said again because its reply was lost, while the job came back to this consumer: this one is not charged (H-18)
    local value = redis.call('HGET', base .. 'jobs', id)
    -- one that was cancelled while others had it is nobody's, and refused below
    if value and string.byte(value) ~= 33 and value_parse(value).deliveries ~= tonumber(before) then
      earlier = earlier or {}
      earlier[#ids] = true
    end
  end
end
if tail and not string.find(redis.call('HGET', meta, 'seq') or '', '^%d+$') then
  return redis.error_reply('DAMAGED field seq of ' .. meta .. ' is no number: the last position that was given')
end
for at = at_reject, at_release - 1, 2 do ids[#ids + 1] = ARGV[at] end
for at = at_release, #ARGV do ids[#ids + 1] = ARGV[at] end

-- everything is checked; first write: frees (README)
local gone, stale, refused, in_order, alone = ids, {}, '', false, false
local released, release = {}, nil
if total > 0 then
  if n_release == 0 and not earlier then in_order, alone = held_take_in_order(base, consumer, ids) end
  if not in_order then
    --- @include "held/remove"
    local mine, where = held_remove_find(base, consumer, ids)
    local leaving, returning, stale_rows, size = {}, {}, {}, 0
    for i = 1, total do
      local id = ids[i]
      if mine[id] and not (earlier and earlier[i]) then
        mine[id] = nil
        leaving[id] = true
        if i > total - n_release then returning[#returning + 1] = id end
      else
        -- not held by it, named twice in one call, or of an earlier delivery
        stale[#stale + 1] = id
        stale_rows[#stale_rows + 1] = i - 1
        ids[i] = false
      end
    end
    refused = table.concat(stale_rows, ',')
    if me.bytes > 0 and #stale > 0 then
      -- the caller's sum counts jobs that left this consumer another way: cancelled, or settled in a call whose reply
      -- was lost
      for id in pairs(leaving) do size = size + redis.call('HSTRLEN', base .. 'jobs', id) end
      freed = size
    end
    if #returning > 0 then
      --- @include "finish/release"
      released, release = release_read(base, returning), release_jobs
    end
    if next(leaving) then
      held_remove(base, consumer, leaving, where)
    else
      redis.call('HDEL', meta, 'oom')
    end
  end
  if not in_order or n_ack + n_done < total then
    gone = {}
    for i = 1, n_ack + n_done do
      if ids[i] then gone[#gone + 1] = ids[i] end
    end
  end
end

local records, lines, returned, back = {}, {}, {}, 0
if #gone > 0 then
  redis.call('HDEL', base .. 'jobs', unpack(gone))
  if not queue.quiet and redis.call('EXISTS', base .. 'errors') == 1 then
    redis.call('HDEL', base .. 'errors', unpack(gone))
  end
  local plain = string.format('D%d:', queue.now)
  for i = 1, n_ack do
    if ids[i] then
      records[#records + 1] = ids[i]
      records[#records + 1] = plain
    end
  end
  for i = 1, n_done do
    local id, at = ids[n_ack + i], at_done + 3 * (i - 1)
    if id then
      local keep, record = tonumber(ARGV[at + 1]), plain .. ARGV[at + 2]
      if keep == 0 then
        record = plain .. '-'
      elseif keep and keep > (tonumber(queue.keep) or KEEP_MS) then
        redis.call('DEL', base .. 'result:' .. id)
        redis.call('RPUSH', base .. 'result:' .. id, record)
        redis.call('PEXPIRE', base .. 'result:' .. id, keep)
        redis.call('HDEL', base .. 'awaited', id)
      end
      records[#records + 1] = id
      records[#records + 1] = record
    end
  end
end
if #gone > 0 or rows ~= '0' then
  queue.rows = queue.rows + rows
  redis.call('HSET', meta, 'acked', string.format('%d', queue.acked + #gone), 'history_rows',
    string.format('%d', queue.rows))
end

if n_retry + n_reject > 0 then
  --- @include "job/value"
  --- @include "queue/count"
  --- @include "order/reinsert"
  --- @include "finish/dead_letter"
  --- @include "history/lines"
  --- @include "schedule/add"
  local stored, scheduled, soonest, retried, rejected = {}, {}, nil, 0, 0
  for i = n_ack + n_done + 1, total - n_release do
    local id = ids[i]
    local retry = i <= n_ack + n_done + n_retry
    local at = retry and at_retry + 6 * (i - n_ack - n_done - 1) or at_reject + 2 * (i - n_ack - n_done - n_retry - 1)
    local value = id and redis.call('HGET', base .. 'jobs', id)
    if value then
      local job = value_parse(value)
      job.id = id
      local cause = not retry and ARGV[at + 1]
      if job.damaged and retry then
        retry, cause = false, dead_letter_undecodable(queue.now)
        lines[#lines + 1] = history_lines_row(id, job, 'dead', queue.now, me.worker, cause)
      end
      if retry then
        local delay, place, charge, error_ = tonumber(ARGV[at + 1]), ARGV[at + 2], ARGV[at + 3], ARGV[at + 5]
        local attempts = job.attempts + (charge ~= '0' and 1 or 0)
        local max = job.max > 0 and job.max or tonumber(queue.max)
        if charge ~= '0' and max > 0 and attempts >= max and job.max == 0 then
          --- @include "finish/attempt"
          -- its task may have a limit of its own, which the queue did not hear of when it came by name
          max = attempt_most(attempt_limits(base, consumer), job, 1, 0, max)
        end
        local last = charge ~= '0' and max > 0 and attempts >= max
        if last then lines[#lines + 1] = history_lines_row(id, job, 'dead', queue.now, me.worker, error_) end
        job.deliveries, job.attempts = job.deliveries + 1, attempts
        if last then
          records[#records + 1] = id
          records[#records + 1] = dead_letter_store(base, queue.now, job, error_)
          rejected = rejected + 1
        else
          if place == 'park' then
            -- nobody here knows its task: it waits aside, keeps its place, and lets those behind it pass
            redis.call('HSET', base .. 'parked', id, error_)
            redis.call('HSET', base .. 'returns_to', id, 'park')
          elseif place == 'aside' then
            redis.call('HSET', base .. 'returns_to', id, 'old')
          elseif charge ~= '0' then
            errors_note(base, id, error_)
          end
          if place == 'tail' and delay > 0 then
            redis.call('HSET', base .. 'returns_to', id, 'tail')
          elseif place == 'tail' then
            job.position, job.due = redis.call('HINCRBY', meta, 'seq', 1), 0
            count_up(meta, 'tailed', 1)
          end
          if delay > 0 then
            local due = queue.now + math.ceil(delay)
            if place ~= 'park' and place ~= 'aside' then job.due = due end
            scheduled[#scheduled + 1] = { due = due, level = job.level, position = job.position, id = id }
            if not soonest or due < soonest then soonest = due end
          elseif place == 'tail' then
            redis.call('RPUSH', base .. 'ready:' .. job.level, id)
            back = back + 1
            notify_browsers(base)
          else
            returned[#returned + 1] = job
          end
          stored[#stored + 1] = id
          stored[#stored + 1] = value_header(job) .. job.envelope
          retried = retried + 1
        end
      else
        job.deliveries, job.attempts = job.deliveries + 1, job.attempts + 1
        records[#records + 1] = id
        records[#records + 1] = dead_letter_store(base, queue.now, job, cause)
        rejected = rejected + 1
      end
    end
  end
  if #stored > 0 then redis.call('HSET', base .. 'jobs', unpack(stored)) end
  if #returned > 0 then reinsert_jobs(base, returned) end
  if #scheduled > 0 then
    schedule_add(base, scheduled)
    queue.quiet = false
    if not queue.paused then
      schedule_add_watch(base, queue.now, soonest, queue.timer)
      queue.timer = redis.call('HGET', meta, 'timer')
      -- this consumer may be the one that was told
      me.state = redis.call('HGET', base .. 'consumer:' .. consumer, 'state')
    end
  end
  if retried > 0 then count_up(meta, 'retried', retried) end
  if rejected > 0 then count_up(meta, 'rejected', rejected) end
end
records_write(base, queue, records)
if rows ~= '0' then history_batch(base, queue, batch, rows, refused) end
if #lines > 0 then
  --- @include "history/lines"
  history_lines_write(base, queue.history_max, lines)
end

back = back + #returned
if release then
  queue.worker = me.worker
  back = back + release(base, consumer, released, {}, queue)
end
if me.bytes > 0 then me.held_bytes = me.held_bytes - freed end

if tonumber(jobs) < 0 then
  if back > 0 and not queue.paused then
    --- @include "consumer/notify"
    consumer_notify(base, queue.now, back, queue.timer, queue.ranked)
    me.state = redis.call('HGET', base .. 'consumer:' .. consumer, 'state')
  end
  window_account(base, me, total > 0)
  return { queue.now, me.state, -1, stale, '' }
end
window_grant(base, me, jobs, bytes)
if alone then me.held = 0 end
local taken, timer, behind = pull_jobs(base, queue, me)
window_account(base, me, total > 0 or #taken > 0)
return { queue.now, me.state, timer, stale, behind, unpack(taken) }
