--- Look which job has a key of unique jobs, or free the key: then the next job of it is enqueued, whatever becomes of the
--- one that had it.
--- KEYS: meta, guard
--- ARGV: key, step
---   step: look | clear
--- REPLY: {now, id of the job that has, or had, the key; "" where none has}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/open"
--- @include "queue/sound_type"

local meta = KEYS[1]
local key = ARGV[1]
local step = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if step ~= 'look' and step ~= 'clear' then return redis.error_reply('BADARGS key_owner: look or clear') end
failure = sound_type(base, 'unique', 'hash') or sound_type(base, 'periods', 'zset')
if failure then return failure end

local owner = redis.call('HGET', base .. 'unique', key)
if owner and redis.call('HEXISTS', base .. 'jobs', owner) == 0 then
  -- one that is done has it until its period is over
  local period = redis.call('ZSCORE', base .. 'periods', key)
  if not period or tonumber(period) <= queue.now then owner = false end
end
if step == 'clear' then
  -- first write: frees (README)
  redis.call('HDEL', base .. 'unique', key)
  redis.call('ZREM', base .. 'periods', key)
end
return { queue.now, owner or '' }
