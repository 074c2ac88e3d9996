--- @hooks places
--- @include "queue/constants"
--- @include "queue/key_types"
--- @include "queue/sound_type"

--- Whether a queue's keys are what its scripts take them for: of their types, with numbers where numbers belong. Redis
--- finds out otherwise only when a command meets them, and what a script has written until then stays. Steps that
--- people and supervisors take look first, at all that they may touch; those that every job takes have no time for that.

--- Fields of meta that are counted with.
local SOUND_NUMBERS = { 'clock', 'seq', 'tailed', 'marked', 'turn', 'term', 'ended_since', 'history_rows', 'history_gone',
  'acked', 'retried', 'rejected', 'released', 'cancelled', 'purged', 'requeued', 'priorities', 'max_deliveries',
  'max_crashes', 'keep_ms', 'history_rows_max' }

--- And of a consumer.
local SOUND_ROW = { 'priority', 'jobs', 'bytes', 'held_bytes', 'slots', 'charged' }

local function sound_numbers(base, key, fields)
  for i, value in ipairs(redis.call('HMGET', base .. key, unpack(fields))) do
    -- a test's clock may be stopped
    if value and fields[i] == 'clock' then value = string.gsub(value, '^@', '') end
    if value and (#value > 16 or not string.find(value, '^%-?%d+%.?%d*$')) then
      return redis.error_reply('DAMAGED ' .. string.format('field %s of the key %s%s is no number: %q', fields[i], base, key,
        string.sub(value, 1, 40)) .. SOUND_REMEDY)
    end
  end
end

--- An error reply where something is not as it must be, else nil. `levels`: those in use; nil: the queue itself was
--- looked at. `names`: consumers that the step is about, beside those that it may have to tell; false: no consumer is
--- looked at.
local function sound_fault(base, levels, names)
  local fault
  if levels then
    for key, meant in pairs(KEY_TYPES) do
      fault = sound_type(base, key, meant)
      if fault then return fault end
    end
    fault = sound_numbers(base, 'meta', SOUND_NUMBERS)
    if fault then return fault end
    local places = {}
    --- @each places = places(levels, places)
    --- @each places = keys(base, places)
    for _, place in ipairs(places) do
      fault = sound_type(base, place[1], place[2])
      if fault then return fault end
    end
  end
  if names == false then return nil end
  local all = { redis.call('HGET', base .. 'meta', 'timer') or nil }
  local function add(some)
    for _, name in ipairs(some) do all[#all + 1] = name end
  end
  add(names or {})
  add(redis.call('ZRANGE', base .. 'interested', '0', WAKE_LAST))
  add(redis.call('ZREVRANGE', base .. 'interested', '0', '0'))
  --- @each waiters(base, all)
  add(redis.call('ZRANGE', base .. 'notified', '0', WAKE_LAST))
  --- @if joined
  -- each that is registered may be the next that is live
  add(redis.call('ZRANGE', base .. 'consumers', '0', WAKE_LAST))
  --- @end
  --- @if fires
  -- what their code declares is read
  add(redis.call('ZRANGE', base .. 'consumers', '0', WAKE_LAST))
  --- @end
  add(redis.call('SMEMBERS', base .. 'browsers'))
  if redis.call('EXISTS', base .. 'byte_waiters') == 1 then
    for _, waiting in ipairs(redis.call('HVALS', base .. 'byte_waiters')) do
      for name in string.gmatch(waiting, '[^\n]+') do all[#all + 1] = name end
    end
  end
  local seen = {}
  for _, name in ipairs(all) do
    if not seen[name] then
      seen[name] = true
      fault = sound_type(base, 'consumer:' .. name, 'hash') or sound_type(base, 'held:' .. name, 'list')
        or sound_type(base, 'wake:' .. name, 'list') or sound_type(base, 'running:' .. name, 'hash')
        or sound_type(base, 'lapsed:' .. name, 'list') or sound_numbers(base, 'consumer:' .. name, SOUND_ROW)
      if fault then return fault end
    end
  end
end
