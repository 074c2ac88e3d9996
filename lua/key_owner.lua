--- Look which jobs have keys of unique jobs, or free the keys: then the next job of each is enqueued, whatever becomes of
--- the one that had it.
--- KEYS: meta, guard
--- ARGV: step, keys...
---   step: look | clear | mend (free those that are of no living job, nor of a period that goes on); keys: at most 250
--- REPLY: {now, {id of the job that has, or had, each key; "" where none has, ...}}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/open"
--- @include "queue/sound_type"

local meta = KEYS[1]
local step = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
if step ~= 'look' and step ~= 'clear' and step ~= 'mend' or #ARGV < FIRST or #ARGV > 251 then
  return redis.error_reply('BADARGS key_owner: look, clear or mend, and 1 to 250 keys')
end
failure = sound_type(base, 'unique', 'hash') or sound_type(base, 'periods', 'zset')
if failure then return failure end

failure = sound_type(base, 'jobs', 'hash') or sound_type(base, 'dead', 'zset')
if failure then return failure end

local found, free = {}, {}
for i = FIRST, #ARGV do
  local key = ARGV[i]
  local owner = redis.call('HGET', base .. 'unique', key)
  local value = owner and redis.call('HGET', base .. 'jobs', owner)
  if owner and not value then
    -- one that is done has it until its period is over
    local period = redis.call('ZSCORE', base .. 'periods', key)
    if not period or tonumber(period) <= queue.now then owner = false end
  end
  local its = value and string.match(value, '^[^;]-|u%w+:([%w_-]+)')
  local wrong = not owner or value and (its ~= key or redis.call('ZSCORE', base .. 'dead', owner))
  if step == 'clear' or wrong then free[#free + 1] = key end
  found[#found + 1] = owner or ''
end
if step ~= 'look' and #free > 0 then
  -- first write: frees (README)
  redis.call('HDEL', base .. 'unique', unpack(free))
  redis.call('ZREM', base .. 'periods', unpack(free))
end
return { queue.now, found }
