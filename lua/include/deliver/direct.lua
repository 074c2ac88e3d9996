--- @include "consumer/highest"
--- @include "consumer/wake"
--- @include "deliver/assign"

--- A job that arrives while nothing waits is delivered straight to a waiting consumer with credit for it.

--- The first of `waiters` (interested consumers, best first) that may take a job of `size` bytes now, or nil.
local function deliver_direct_consumer(base, now, levels, ranked, waiters, size)
  local before = { base .. 'scheduled' }
  for level in string.gmatch(levels, '%d+') do
    before[#before + 1] = base .. 'ready:' .. level
    before[#before + 1] = base .. 'due:' .. level
  end
  --- @if heads
  local heads
  --- @each heads = heads(base, { name = waiters[1] })
  if not heads.lists then before = { base .. 'scheduled' } end
  for _, key in ipairs(heads) do before[#before + 1] = key end
  --- @end
  local there = redis.call('EXISTS', unpack(before))
  if there > 0 then
    local first = redis.call('ZRANGE', base .. 'scheduled', '0', '0', 'WITHSCORES')
    if there > 1 or not first[2] or tonumber(first[2]) <= now then return nil end
  end
  local floor = consumer_highest(base, ranked)
  --- @if able
  -- those of a higher priority who hear this job are first in `waiters`, or there are none
  floor = nil
  --- @end
  for _, name in ipairs(waiters) do
    --- @if able
    -- others may take from where something waits
    if name ~= waiters[1] then return nil end
    --- @end
    local row = redis.call('HMGET', base .. 'consumer:' .. name, 'priority', 'jobs', 'bytes', 'held_bytes')
    if floor and (tonumber(row[1]) or 0) < floor then return nil end
    local held = redis.call('LLEN', base .. 'held:' .. name)
    local jobs, bytes = tonumber(row[2]) or 0, tonumber(row[3]) or 0
    if jobs > held and (bytes == 0 or held == 0 or (tonumber(row[4]) or 0) + size <= bytes) then
      return { name = name, jobs = row[2], bytes = bytes, held = held, held_bytes = tonumber(row[4]) or 0 }
    end
  end
  return nil
end

--- Deliver it to the `taker` that was found. Returns an error reply where that fails: nothing is changed then.
local function deliver_direct(base, now, taker, timer, id, value)
  local account
  if taker.bytes > 0 then account = string.format('%d', (taker.held > 0 and taker.held_bytes or 0) + #value) end
  local fault = deliver_assign(base, now, taker.name, taker.jobs, account, id, value)
  if fault then return fault end
  if taker.name == timer then consumer_wake_timer(base, now) end
end
