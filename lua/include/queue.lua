--- @include "clock"
--- @include "schema"
--- @include "queue_rows"

--- What a settle or pull must know of its queue and its consumer; the checks before the writes.
--- Numbers stay text until somebody counts with them.

--- {now=, levels=, paused=, timer=, ranked=, since=, keep=, max=, history_max=, quiet=, ...}, or nil and an error
--- reply. `quiet`: nothing is scheduled, nobody waits, no errors are noted: what a plain busy queue need not look at.
--- `row`: what `queue_row` said, where that was asked already.
local function queue_open(base, row)
  row = row or queue_row(base)
  local fault = schema_fault(row[1])
  if fault then return nil, fault end
  return {
    now = clock(row[2]),
    levels = row[3] or '',
    paused = row[4] == '1',
    timer = row[5],
    ranked = row[6] == '1',
    since = row[7],
    keep = row[8],
    history_max = row[9],
    promoted = row[10],
    acked = tonumber(row[11]) or 0,
    rows = tonumber(row[12]) or 0,
    max = tonumber(row[13]) or 10,
    quiet = redis.call('EXISTS', base .. 'scheduled', base .. 'interested', base .. 'short', base .. 'awaited',
      base .. 'errors') == 0,
  }
end

--- The consumer if it is registered in this term, or nil and an error reply (H-08: a stale term changes nothing).
--- `row`: what `queue_consumer_row` said, where that was asked already.
local function queue_consumer(base, name, term, row)
  row = row or queue_consumer_row(base, name)
  if not row[1] then return nil, redis.error_reply('GONE consumer is not registered, or its lease ended') end
  if row[1] ~= term then return nil, redis.error_reply('GONE the term of this consumer is over') end
  return {
    name = name,
    state = row[2],
    priority = row[3],
    jobs = row[4],
    bytes = tonumber(row[5]) or 0,
    held_bytes = tonumber(row[6]) or 0,
    account = row[6] or '0',
    worker = row[7] or '',
    browses = row[8] == 'browse',
  }
end

--- The window a consumer grants with this call, as text. It is written only where it changed.
local function queue_window(base, consumer, jobs, bytes)
  consumer.want = tonumber(jobs)
  local limit = tonumber(bytes)
  if jobs == consumer.jobs and limit == consumer.bytes then return end
  -- the HDEL does nothing but be the first write: under a memory limit Redis lets what follows it pass (H-10)
  redis.call('HDEL', base .. 'consumer:' .. consumer.name, 'window')
  redis.call('HSET', base .. 'consumer:' .. consumer.name, 'jobs', jobs, 'bytes', bytes)
  if limit > 0 and consumer.bytes == 0 then
    --- @include "hands_look"
    -- without a limit nothing is counted
    consumer.held_bytes = hands_bytes(base, consumer.name)
    consumer.account = false
  end
  consumer.bytes = limit
end

--- Write down the bytes in a consumer's hands, where it has a limit and they changed. `wrote`: this call has written.
local function queue_account(base, consumer, wrote)
  if consumer.bytes == 0 then return end
  local held = string.format('%d', consumer.held_bytes)
  if held == consumer.account then return end
  local key = base .. 'consumer:' .. consumer.name
  if not wrote then redis.call('HDEL', key, 'window') end
  redis.call('HSET', key, 'held_bytes', held)
end
