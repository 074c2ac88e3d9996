--- End waiting jobs, a slice per call: each gets a record and a row in history. Held ones are left alone (X-04).
--- KEYS: meta, guard
--- ARGV: scheduled, limit
---   scheduled: "1" = the scheduled ones too; limit: jobs in this call, at most 500
--- REPLY: {now, how many ended, 1 if there may be more}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "order/levels"
--- @include "finish/end"
--- @include "schedule/member"

local meta = KEYS[1]
local scheduled = ARGV[1]
local limit = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
limit = tonumber(limit)
if not limit or limit < 1 or limit > 500 then return redis.error_reply('BADARGS purge: a limit from 1 to 500') end

failure = sound_fault(base, queue.levels)
if failure then return failure end
--- @each ripen(base, queue)

local ids = {}
--- @if heads
--- @include "finish/purge_heads"
local heads
--- @each heads = heads(base)
purge_heads_behind(base, ids, limit)
--- @end
for _, level in ipairs(levels_list(queue.levels)) do
  for _, kind in ipairs({ 'due:', 'ready:' }) do
    if #ids < limit then
      for _, id in ipairs(redis.call('LPOP', base .. kind .. level, limit - #ids) or {}) do ids[#ids + 1] = id end
    end
  end
end
--- @if heads
purge_heads(heads, ids, limit)
--- @each cleared(base, ids)
--- @end
--- @each ids = deferred(base, ids, limit)
if scheduled == '1' and #ids < limit then
  local members = redis.call('ZRANGE', base .. 'scheduled', 0, limit - #ids - 1)
  if #members > 0 then
    redis.call('ZREM', base .. 'scheduled', unpack(members))
    for _, member in ipairs(members) do ids[#ids + 1] = string.sub(member, MEMBER_PREFIX + 1) end
  end
end
local ended = end_jobs(base, queue, ids, 'P', 'purged')
return { queue.now, ended, #ids == limit and 1 or 0 }
