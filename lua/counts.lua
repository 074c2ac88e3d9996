--- Count a queue: exact gauges and counters, in one look.
--- KEYS: meta, guard
--- ARGV: waiting
---   waiting: "1" = also the enqueue time of the oldest waiting job
--- REPLY: {now, meta as {field, value, ...}, {level, waiting elements, ...}, scheduled, held, dead,
---   {interested, notified, not_interested, browsers}, awaited, oldest enqueue ms or 0, next due ms or 0, parked, jobs
---   in the outbox, {labels, ready jobs that nobody selects, ...}, name, number, ... of what policies count}
---   the first number after the levels is without the cancelled ones: meta's field `marked` says how many those are
--- ERRORS: SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "order/levels"
--- @include "queue/constants"
--- @include "consumer/most"

local meta = KEYS[1]
local waiting = ARGV[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end

local per_level, oldest = {}, 0
--- @if heads
--- @include "order/score"
local heads
--- @each heads = heads(base)
--- @include "order/oldest_heads"
if waiting == '1' then oldest = oldest_heads(base, heads, queue.levels) end
--- @end
for _, level in ipairs(levels_list(queue.levels)) do
  local total = 0
  for _, kind in ipairs({ 'due:', 'ready:' }) do
    local key = base .. kind .. level
    total = total + redis.call('LLEN', key)
    if waiting == '1' then
      local ids = redis.call('LRANGE', key, 0, 99)
      if #ids > 0 then
        for _, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
          local enqueued = value and tonumber(string.match(value, '^%d+,(-?%d+)'))
          if enqueued then
            enqueued = enqueued + EPOCH
            if oldest == 0 or enqueued < oldest then oldest = enqueued end
            break
          end
        end
      end
    end
  end
  --- @if heads
  for _, key in ipairs(heads) do total = total + score_count(key, tonumber(level)) end
  --- @end
  per_level[#per_level + 1] = tonumber(level)
  per_level[#per_level + 1] = total
end
local held = 0
for _, consumer in ipairs(redis.call('ZRANGE', base .. 'consumers', 0, CONSUMERS_LAST)) do
  held = held + redis.call('LLEN', base .. 'held:' .. consumer)
end
local outgoing = 0
--- @if sends
outgoing = redis.call('ZCARD', base .. 'outgoing')
--- @end
local unheard = {}
--- @each unheard = unheard(base, unheard)
local next_ = redis.call('ZRANGE', base .. 'scheduled', 0, 0, 'WITHSCORES')
local counts = {
  queue.now,
  redis.call('HGETALL', meta),
  per_level,
  redis.call('ZCARD', base .. 'scheduled'),
  held,
  redis.call('ZCARD', base .. 'dead'),
  {
    redis.call('ZCARD', base .. 'interested'),
    redis.call('ZCARD', base .. 'notified'),
    redis.call('SCARD', base .. 'not_interested'),
    redis.call('SCARD', base .. 'browsers'),
  },
  redis.call('HLEN', base .. 'awaited'),
  oldest,
  next_[2] and tonumber(next_[2]) or 0,
  redis.call('HLEN', base .. 'parked'),
  outgoing,
  unheard,
}
--- @each counts = counted(base, counts)
return counts
