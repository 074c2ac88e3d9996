--- Keep with a held job what its code has done so far, in the place of what was kept before: it stands in the job's own
--- value, and goes with it.
--- KEYS: meta, guard
--- ARGV: consumer, term, id, deliveries, steps
---   deliveries: how often the job had been delivered before this time; steps: text of letters, digits, - and _, "" for
---     none, at most 401000 bytes
--- REPLY: {now, bytes of the job's value, as text; "" where nothing was kept: the job is not held by this consumer, or
---   by another delivery}
--- ERRORS: BADARGS | DAMAGED | GONE | SCHEMA
--- @include "queue/open"
--- @include "queue/sound_type"
--- @include "consumer/open"
--- @include "job/value"

local meta = KEYS[1]
local consumer = ARGV[1]
local term = ARGV[2]
local id = ARGV[3]
local deliveries = ARGV[4]
local steps = ARGV[5]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if #steps > 401000 or string.find(steps, '[^%w_-]') then
  return redis.error_reply('BADARGS keep_steps: at most 401000 letters, digits, - and _')
end
failure = sound_type(base, 'jobs', 'hash') or sound_type(base, 'consumer:' .. consumer, 'hash')
  or sound_type(base, 'held:' .. consumer, 'list')
if failure then return failure end
local me
me, failure = consumer_open(base, consumer, term)
if failure then return failure end

local value = redis.call('HGET', base .. 'jobs', id)
local job = value and string.byte(value) ~= 33 and value_parse(value)
if not job or job.damaged or job.deliveries ~= tonumber(deliveries)
  or not redis.call('LPOS', base .. 'held:' .. consumer, id) then
  return { queue.now, '' }
end
job.tags = string.gsub(job.tags, '|n[^|]*', '')
if steps ~= '' then job.tags = job.tags .. '|n' .. steps end
local longer = value_header(job) .. job.envelope
redis.call('HSET', base .. 'jobs', id, longer)
if me.bytes > 0 then redis.call('HINCRBY', base .. 'consumer:' .. consumer, 'held_bytes', #longer - #value) end
return { queue.now, string.format('%d', #longer) }
