--- Note how far a consumer is with stopping the code of jobs that were cancelled while it ran them.
--- KEYS: meta, guard
--- ARGV: consumer, stage, ids...
---   consumer: that held them when they were cancelled; stage: delivered, ended; ids: at most 250
--- REPLY: {now, how many were noted}: jobs that nobody asked this consumer to stop are passed over, as are those of
---   which a later stage is known
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/open"
--- @include "queue/sound_type"
--- @include "stop/record"

local meta = KEYS[1]
local consumer = ARGV[1]
local stage = ARGV[2]
local FIRST = 3

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if stage ~= 'delivered' and stage ~= 'ended' or #ARGV < FIRST or #ARGV > FIRST + 249 then
  return redis.error_reply('BADARGS note_stop takes delivered or ended, and 1 to 250 ids')
end
failure = sound_type(base, 'ended', 'hash') or sound_type(base, 'ended:old', 'hash')
for i = FIRST, #ARGV do failure = failure or sound_type(base, 'stop:' .. ARGV[i], 'list') end
if failure then return failure end

-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
local noted = 0
for i = FIRST, #ARGV do
  local key, head, said = stop_record(base, ARGV[i])
  if key and said.by == consumer and said.stop ~= 'ended' and said.stop ~= stage then
    redis.call('HSET', key, ARGV[i], head .. cjson.encode({ by = consumer, stop = stage, kill = said.kill }))
    noted = noted + 1
    if stage == 'ended' then
      -- who waits for it finds one element, as with results: read, not consumed, and gone after a minute
      local list = base .. 'stop:' .. ARGV[i]
      redis.call('DEL', list)
      redis.call('RPUSH', list, stage)
      redis.call('PEXPIRE', list, '60000')
    end
  end
end
return { queue.now, noted }
