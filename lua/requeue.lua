--- Give dead letters another life: each goes to the tail of its level, with its attempts and crashes counted from
--- nothing.
--- KEYS: meta, guard
--- ARGV: ids...
---   ids: at most 250
--- REPLY: {now, how many were requeued, where jobs may be unique {id that stays dead, id of the job that has its key,
---   ...}}; ids that are not dead are passed over
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "job/value"
--- @include "result/records"
--- @include "order/levels"
--- @include "consumer/notify"
--- @include "consumer/browsers"
--- @hooks revived
--- @hooks shelf
--- @hooks entered
--- @hooks weigh
--- @hooks rival

local meta = KEYS[1]
local FIRST = 1

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if #ARGV < 1 or #ARGV > 250 then return redis.error_reply('BADARGS requeue takes 1 to 250 ids') end

failure = sound_fault(base, queue.levels)
if failure then return failure end
--- @each ripen(base, queue)

--- @if grown
local depth
--- @each depth = depth(base, #ARGV)
--- @end
local count, used = 0, {}
--- @if rival
local rivals = {}
--- @end
for i = FIRST, #ARGV do
  local id = ARGV[i]
  local value = redis.call('ZSCORE', base .. 'dead', id) and redis.call('HGET', base .. 'jobs', id)
  --- @if rival
  if value then
    local rival
    --- @each rival = rival(base, queue.now, { id = id, tags = value })
    if rival then
      rivals[#rivals + 1] = id
      rivals[#rivals + 1] = rival
      value = nil
    end
  end
  --- @end
  if value then
    local job = value_parse(value)
    redis.call('ZREM', base .. 'dead', id)
    redis.call('HDEL', base .. 'causes', id)
    records_forget(base, id)
    redis.call('DEL', base .. 'result:' .. id)
    job.position = redis.call('HINCRBY', meta, 'seq', 1)
    job.due, job.attempts, job.crashes = 0, 0, 0
    --- @each revived(base, queue.now, job)
    value = value_header(job) .. job.envelope
    redis.call('HSET', base .. 'jobs', id, value)
    job.id = id
    local others = { job }
    --- @each others = shelf(base, queue, others)
    if others[1] then redis.call('RPUSH', base .. 'ready:' .. job.level, id) end
    --- @each entered(base, queue.now, { id, value })
    --- @each weigh(base, queue.now, { id, value }, 'ready')
    used[job.level] = true
    count = count + 1
  end
end
if count > 0 then
  redis.call('HINCRBY', meta, 'requeued', count)
  redis.call('HINCRBY', meta, 'tailed', count)
  queue.levels = levels_use(meta, queue.levels, used)
  browsers_tell(base)
  local ready = count - (queue.kept_back or 0)
  --- @if trim
  local left
  --- @each left = trim(base, queue)
  if left then ready = math.min(ready, left) end
  --- @end
  if not queue.paused and ready > 0 then consumer_notify(base, queue.now, ready, queue.timer, queue.ranked) end
end
--- @each stays(base)
--- @if grown
--- @each grown(base, queue.now, depth)
--- @end
--- @if rival
do return { queue.now, count, rivals } end
--- @end
return { queue.now, count }
