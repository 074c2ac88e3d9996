--- Make scheduled jobs ready now, at the head of their levels: the ones that are due, or the ones named, due or not.
--- KEYS: meta, guard
--- ARGV: ids...
---   ids: at most 250; none = what is due, up to 256 in one call
--- REPLY: {now, how many became ready}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue"
--- @include "sound"
--- @include "promote"
--- @include "seat"
--- @include "value"
--- @include "consumers"

local meta = KEYS[1]
local FIRST = 1

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if #ARGV > 250 then return redis.error_reply('BADARGS promote takes at most 250 ids') end

failure = sound_fault(base, queue.levels)
if failure then return failure end

-- the HDEL does nothing but be the first write: under a memory limit Redis lets what follows it pass (H-10)
redis.call('HDEL', meta, 'oom')
local count = 0
if #ARGV >= FIRST then
  local values = redis.call('HMGET', base .. 'jobs', unpack(ARGV))
  for i = FIRST, #ARGV do
    local value = values[i]
    if value and string.byte(value) ~= 33 then
      local job = value_parse(value)
      local seat = seat_of(job, ARGV[i])
      if not job.damaged and redis.call('ZSCORE', base .. 'scheduled', seat) then
        redis.call('ZADD', base .. 'scheduled', queue.now, seat)
        if redis.call('HEXISTS', base .. 'seated', ARGV[i]) == 0 then
          job.due = queue.now
          redis.call('HSET', base .. 'jobs', ARGV[i], value_header(job) .. job.envelope)
        end
        count = count + 1
      end
    end
  end
end
if queue.paused then return { queue.now, count } end
local promoted = promote_due(base, queue, PROMOTE_MAX)
if promoted > 0 then consumer_notify(base, queue.now, promoted, queue.timer, queue.ranked) end
return { queue.now, math.max(count, promoted) }
