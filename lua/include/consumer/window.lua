--- What a consumer grants with a call, and the account of its bytes.

--- The window a consumer grants with this call, as text. It is written only where it changed.
local function window_grant(base, consumer, jobs, bytes)
  consumer.want = tonumber(jobs)
  local limit = tonumber(bytes)
  if jobs == consumer.jobs and limit == consumer.bytes then return end
  -- first write: frees (README)
  redis.call('HDEL', base .. 'consumer:' .. consumer.name, 'window')
  redis.call('HSET', base .. 'consumer:' .. consumer.name, 'jobs', jobs, 'bytes', bytes)
  if limit > 0 and consumer.bytes == 0 then
    --- @include "held/scan"
    -- without a limit nothing is counted
    consumer.held_bytes = held_scan_bytes(base, consumer.name)
    consumer.account = false
  end
  consumer.bytes = limit
end

--- Write down the bytes that a consumer holds, where it has a limit and they changed. `wrote`: this call has written.
local function window_account(base, consumer, wrote)
  if consumer.bytes == 0 then return end
  local held = string.format('%d', consumer.held_bytes)
  if held == consumer.account then return end
  local key = base .. 'consumer:' .. consumer.name
  if not wrote then redis.call('HDEL', key, 'window') end
  redis.call('HSET', key, 'held_bytes', held)
end
