--- What a consumer grants with a call, and the account of its bytes.

--- The window a consumer grants with this call, as text. `window_account` writes it, where it changed.
local function window_grant(base, consumer, jobs, bytes)
  consumer.want = tonumber(jobs)
  local limit = tonumber(bytes)
  if jobs == consumer.jobs and limit == consumer.bytes then return end
  if limit > 0 and consumer.bytes == 0 then
    --- @include "held/scan"
    -- without a limit nothing is counted
    consumer.held_bytes = held_scan_bytes(base, consumer.name)
    consumer.account = false
  end
  consumer.bytes = limit
  consumer.granted = { jobs, bytes }
end

--- Write down what a consumer grants, and the bytes that it holds, where it has a limit and they changed. `wrote`: this
--- call has written. First write: frees (README).
local function window_account(base, consumer, wrote)
  local key, granted = base .. 'consumer:' .. consumer.name, consumer.granted
  if granted then
    if not wrote then redis.call('HDEL', key, 'window') end
    redis.call('HSET', key, 'jobs', granted[1], 'bytes', granted[2])
    wrote = true
  end
  if consumer.bytes == 0 then return end
  local held = string.format('%d', consumer.held_bytes)
  if held == consumer.account then return end
  if not wrote then redis.call('HDEL', key, 'window') end
  redis.call('HSET', key, 'held_bytes', held)
end
