--- Take jobs out of the outbox, to send them to their queues: for five seconds nobody else is given them. What is not
--- said to be there by then (`outgoing_done`) is given out again.
--- KEYS: meta, guard
--- ARGV: limit
---   limit: jobs in this call, at most 250; a call takes no more than a megabyte, but one job
--- REPLY: {now, how many are in the outbox, member, text, ...}; text: JSON object {target, id, terms, origin,
---   ends}, a line end, the envelope
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/clock"
--- @include "queue/schema"
--- @include "queue/sound_type"

local meta = KEYS[1]
local limit = ARGV[1]

--- How long nobody else is given what one has taken, ms; bytes of one call.
local TAKEN_MS, TAKEN_BYTES = 5000, 1048576

local base = string.sub(meta, 1, -5)
local row = redis.call('HMGET', meta, 'v', 'clock')
local fault = schema_fault(row[1])
if fault then return fault end
limit = tonumber(limit)
if not limit or limit < 1 or limit > 250 then return redis.error_reply('BADARGS outgoing_take: a limit from 1 to 250') end
fault = sound_type(base, 'outgoing', 'zset') or sound_type(base, 'outgoing:jobs', 'hash')
if fault then return fault end

local now = clock(row[2])
local past = string.format('%d', now)
local members = redis.call('ZRANGEBYSCORE', base .. 'outgoing', '-inf', past, 'LIMIT', '0', string.format('%d', limit))
local reply, taken, bytes = { now, redis.call('ZCARD', base .. 'outgoing') }, {}, 0
if #members == 0 then return reply end
for i, text in ipairs(redis.call('HMGET', base .. 'outgoing:jobs', unpack(members))) do
  bytes = bytes + (text and #text or 0)
  if bytes > TAKEN_BYTES and #taken > 0 then break end
  taken[#taken + 1] = string.format('%d', now + TAKEN_MS)
  taken[#taken + 1] = members[i]
  -- a member without a job is there for the doctor
  if text then
    reply[#reply + 1] = members[i]
    reply[#reply + 1] = text
  end
end
-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
redis.call('ZADD', base .. 'outgoing', 'XX', unpack(taken))
return reply
