--- Show what the limits of a queue allow, and how far they are used.
--- KEYS: meta, guard
--- ARGV: none
--- REPLY: {now, {limit, permits that are out, ...}, {limit, what was set, ...}, {limit, jobs that wait for it, ...}, {rate,
---   when the first of these finds its tokens, ms, ...}}; limits are escaped; of those that are waited for at most 10000
--- ERRORS: SCHEMA
--- @include "queue/open"
--- @hooks allow

local meta = KEYS[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local waiting = {}
for _, limit in ipairs(redis.call('ZRANGE', base .. 'blocked', 0, 9999)) do
  waiting[#waiting + 1] = limit
  waiting[#waiting + 1] = redis.call('ZCARD', base .. 'group:' .. limit)
end
return { queue.now, redis.call('HGETALL', base .. 'permits'), redis.call('HGETALL', base .. 'limits'), waiting,
  redis.call('ZRANGE', base .. 'tokens_due', 0, 9999, 'WITHSCORES') }
