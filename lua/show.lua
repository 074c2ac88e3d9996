--- One job by its id, wherever it is.
--- KEYS: meta, guard
--- ARGV: id
--- REPLY: {now, state, value, errors (a JSON object per line), cause, record, holder, place}; cause: why it is dead, or
---   parked (no capable worker); state: ready, blocked, scheduled, deferred,
---   held, dead, ended, unknown; place: jobs before it in its level, or that it waits for, or -1 where that has no
---   meaning
--- ERRORS: SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "job/value"
--- @include "schedule/member"
--- @include "order/search"
--- @one rank
--- @include "result/read"
--- @include "held/scan"

local meta = KEYS[1]
local id = ARGV[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end

local value = redis.call('HGET', base .. 'jobs', id) or ''
local record = result_read(base, id) or redis.call('LINDEX', base .. 'result:' .. id, 0) or ''
local errors = redis.call('HGET', base .. 'errors', id) or ''
local cause = redis.call('HGET', base .. 'causes', id) or ''
if value == '' or string.byte(value) == 33 then
  return { queue.now, record ~= '' and 'ended' or 'unknown', '', errors, '', record, '', -1 }
end
local job = value_parse(value)
job.id = id
if redis.call('ZSCORE', base .. 'dead', id) then
  return { queue.now, 'dead', value, errors, cause, record, '', -1 }
end
if redis.call('ZSCORE', base .. 'scheduled', schedule_member(job, id)) then
  return { queue.now, 'scheduled', value, errors, redis.call('HGET', base .. 'parked', id) or '', '', '', -1 }
end
--- @if awaits
local parents
--- @each parents = awaits(base, job)
if parents then return { queue.now, 'deferred', value, errors, '', '', '', parents } end
--- @end
local holder = held_scan_holder(base, id)
if holder then return { queue.now, 'held', value, errors, '', '', holder, -1 } end

--- @if stands
--- @include "order/standing"
local heads
--- @each heads = stands(base, job)
if heads then
  --- @if preceding
  local ahead
  --- @each ahead = preceding(base, job)
  if ahead then return { queue.now, 'ready', value, errors, '', '', '', ahead } end
  --- @end
  local standing = select(2, standing_of(job))
  local before = redis.call('ZRANK', heads, standing)
  for level = job.level + 1, 9 do before = before - score_count(heads, level) end
  --- @if member
  -- those without keys go first
  for _, kind in ipairs({ 'due:', 'ready:' }) do before = before + redis.call('LLEN', base .. kind .. job.level) end
  --- @end
  return { queue.now, 'ready', value, errors, '', '', '', before }
end
--- @end
local placed
--- @each placed = behind(base, job)
if placed then return { queue.now, 'blocked', value, errors, '', '', '', placed } end
local place = order_search(base, rank(base, job), job)
if job.due == 0 then place = place + redis.call('LLEN', base .. 'due:' .. job.level) end
return { queue.now, 'ready', value, errors, '', '', '', place }
