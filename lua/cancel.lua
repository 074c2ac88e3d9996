--- Cancel a job. Waiting or scheduled: it ends now. Held by a consumer: it ends now too, the consumer is notified, and
--- its later settle changes nothing (X-04). Cancelled before, while a consumer held it: where its code is to be stopped,
--- the consumer is notified of that, if nobody said so much to it before.
--- KEYS: meta, guard
--- ARGV: id, held
---   held: "1" = also where a consumer holds it, "purge" = the same, as part of a purge, "stop", "kill" = the same, and
---     what runs there is to be interrupted, or its process killed; else such a job is left alone (C-25)
--- REPLY: {now, what it was: ready, blocked, scheduled, deferred, held; or why not: holds, dead, ended, unknown}
--- ERRORS: DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "job/value"
--- @include "schedule/member"
--- @include "result/records"
--- @include "result/read"
--- @include "history/lines"
--- @include "consumer/wait_for_bytes"
--- @include "held/scan"
--- @include "stop/record"

local meta = KEYS[1]
local id = ARGV[1]
local held = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end

-- what its consumer is notified of: it is gone, it is to be stopped, its process is to be killed
local notice = ({ ['1'] = 'X', purge = 'X', stop = 'S', kill = 'K' })[held]

--- The job has ended. Where it was cancelled, its code may run still: notify the consumer that it is to be stopped.
--- Returns an error reply, or nil.
local function stop_late()
  local fault = sound_type(base, 'ended', 'hash') or sound_type(base, 'ended:old', 'hash')
  if fault then return fault end
  local key, head, said = stop_record(base, id)
  if not key or said.stop == 'ended' or said.stop and notice == 'S' then return nil end
  local holder = said.by or said.holder
  local wake = 'wake:' .. holder
  fault = sound_type(base, 'consumer:' .. holder, 'hash') or sound_type(base, wake, 'list')
  if fault or redis.call('HEXISTS', base .. 'consumer:' .. holder, 'term') == 0 then return fault end
  -- first write: frees (README)
  redis.call('HDEL', meta, 'oom')
  if not said.stop or notice == 'K' and not said.kill then
    local more = { by = holder, stop = said.stop or 'requested', kill = notice == 'K' or nil }
    redis.call('HSET', key, id, head .. cjson.encode(more))
  end
  -- who does not listen finds one of them, however often one asks
  if not redis.call('LPOS', base .. wake, notice .. id) then redis.call('RPUSH', base .. wake, notice .. id) end
end

--- @each ripen(base, queue)
local value = redis.call('HGET', base .. 'jobs', id)
if not value then
  failure = (notice == 'S' or notice == 'K') and stop_late()
  if failure then return failure end
  return { queue.now, result_read(base, id) and 'ended' or 'unknown' }
end
if string.byte(value) == 33 then return { queue.now, 'ended' } end
if redis.call('ZSCORE', base .. 'dead', id) then return { queue.now, 'dead' } end
local job = value_parse(value)
job.id = id

local was, worker, placed = 'ready', '', nil
local member = schedule_member(job, id)
local scheduled = redis.call('ZSCORE', base .. 'scheduled', member)
local holder = not scheduled and held_scan_holder(base, id)
if holder and not notice then return { queue.now, 'holds' } end
failure = sound_fault(base, queue.levels, { holder or nil })
if failure then return failure end

if scheduled then
  was = 'scheduled'
  redis.call('ZREM', base .. 'scheduled', member)
  redis.call('HDEL', base .. 'jobs', id)
  redis.call('HDEL', base .. 'parked', id)
  redis.call('HDEL', base .. 'returns_to', id)
else
  if holder then
    was = 'held'
    local row = redis.call('HMGET', base .. 'consumer:' .. holder, 'bytes', 'worker')
    worker = row[2] or ''
    redis.call('LREM', base .. 'held:' .. holder, 1, id)
    redis.call('HDEL', base .. 'jobs', id)
    if (tonumber(row[1]) or 0) > 0 then
      redis.call('HINCRBY', base .. 'consumer:' .. holder, 'held_bytes', -#value)
    end
    redis.call('RPUSH', base .. 'wake:' .. holder, notice .. id)
  else
    -- first write: frees (README)
    redis.call('HDEL', base .. 'errors', id)
    --- @each placed = unblock(base, queue, job)
    if placed then
      was = placed
      redis.call('HDEL', base .. 'jobs', id)
    else
      -- a mark: the element goes when the head passes it, so that nothing walks the list
      redis.call('HSET', base .. 'jobs', id, string.format('!%d,%d', job.position, job.due))
      redis.call('HINCRBY', meta, 'marked', 1)
    end
    --- @each left(base, { id })
    wait_for_bytes_over(base, queue.now, { id })
  end
end
redis.call('HDEL', base .. 'errors', id)
local letter, word = 'C', 'cancelled'
if held == 'purge' then letter, word = 'P', 'purged' end
redis.call('HINCRBY', meta, word, 1)
local stopping = ''
if holder and notice ~= 'X' then
  stopping = cjson.encode({ by = holder, stop = 'requested', kill = notice == 'K' or nil })
elseif holder and letter == 'C' then
  stopping = cjson.encode({ holder = holder })
end
records_write(base, queue, { id, string.format('%s%d:', letter, queue.now) .. stopping })
history_lines_write(base, queue.history_max, { history_lines_row(id, job, word, queue.now, worker) })
--- @if pass
--- @include "consumer/notify_opened"
--- @each pass(base, queue, { job })
notify_opened(base, queue)
--- @end
--- @each vacated(base, { now = queue.now })
return { queue.now, was }
