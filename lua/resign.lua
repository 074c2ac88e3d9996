--- Put another envelope into a scheduled job, where its envelope is still the one that the caller has read.
--- KEYS: meta, guard
--- ARGV: id, envelope, fresh
---   envelope: the one that the caller has read; fresh: the same job with another signature
--- REPLY: {now, 1 = done | 0 = the job is not scheduled any more, or has another envelope}
--- ERRORS: SCHEMA
--- @include "queue/open"
--- @include "job/value"
--- @include "schedule/member"

local meta = KEYS[1]
local id = ARGV[1]
local envelope = ARGV[2]
local fresh = ARGV[3]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end

local value = redis.call('HGET', base .. 'jobs', id)
if not value or string.byte(value) == 33 then return { queue.now, 0 } end
local job = value_parse(value)
if job.damaged or job.envelope ~= envelope or not redis.call('ZSCORE', base .. 'scheduled', schedule_member(job, id)) then
  return { queue.now, 0 }
end
local signed = value_header(job) .. fresh
redis.call('HSET', base .. 'jobs', id, signed)
--- @each weigh(base, queue.now, { id, signed }, 'scheduled')
return { queue.now, 1 }
