--- A worker knows these tasks: jobs that were parked for the lack of one go back to the places they kept.
--- KEYS: meta, guard
--- ARGV: cursor, tasks...
---   cursor: "0", then what the last call returned, until it returns "0"
--- REPLY: {now, cursor, how many went back}
--- ERRORS: DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "job/value"
--- @include "schedule/member"
--- @include "order/reinsert"
--- @include "consumer/notify"
--- @hooks eligible

local meta = KEYS[1]
local cursor = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end

failure = sound_fault(base, queue.levels)
if failure then return failure end
--- @each ripen(base, queue)

local known = {}
for i = FIRST, #ARGV do known[ARGV[i]] = true end
local scanned = redis.call('HSCAN', base .. 'parked', cursor, 'COUNT', 100)
local ids, back = {}, {}
for i = 1, #scanned[2], 2 do ids[#ids + 1] = scanned[2][i] end
if #ids > 0 then
  local values = redis.call('HMGET', base .. 'jobs', unpack(ids))
  local stored, dropped = {}, {}
  for i, id in ipairs(ids) do
    local job = values[i] and value_parse(values[i])
    if job and not job.damaged and known[value_task(job.envelope)] then
      job.id = id
      redis.call('ZREM', base .. 'scheduled', schedule_member(job, id))
      redis.call('HDEL', base .. 'parked', id)
      redis.call('HDEL', base .. 'returns_to', id)
      local over
      --- @each over = eligible(values[i], queue.now)
      local which = over and dropped or stored
      which[#which + 1] = id
      which[#which + 1] = values[i]
      if not over then back[#back + 1] = job end
    end
  end
  --- @each dropped(base, queue, dropped, {})
  --- @each entered(base, queue.now, stored)
  --- @each weigh(base, queue.now, stored, 'ready')
end
--- @if pass
--- @include "consumer/notify_opened"
notify_opened(base, queue)
--- @end
if #back > 0 then
  reinsert_jobs(base, queue, back)
  local ready = #back
  --- @if trim
  local left
  --- @each left = trim(base, queue)
  if left then ready = math.min(ready, left) end
  --- @end
  if not queue.paused then consumer_notify(base, queue.now, ready, queue.timer, queue.ranked) end
end
--- @each stays(base)
--- @each vacated(base, { now = queue.now })
return { queue.now, scanned[1], #back }
