--- Drop what is noted of jobs that it is no longer true of, and note what is missing.
--- KEYS: meta, guard
--- ARGV: which, ids...
---   which: causes (of what is not dead), errors, awaited, parked (of what is not there, or not scheduled),
---   byte_waiters (consumers that wait for it are notified), records (of what is alive), cause (write one for a dead
---   letter without), waiting (what policies note of jobs that wait: as it should be); ids: at most 250
--- REPLY: {now, how many were changed}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "job/value"
--- @include "schedule/member"
--- @include "consumer/wait_for_bytes"
--- @include "result/records"
--- @include "order/search"
--- @one rank
--- @hooks left
--- @hooks entered
--- @hooks weigh
--- @if weigh
--- @include "held/scan"
--- @end

local meta = KEYS[1]
local which = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local known = { causes = 1, errors = 1, awaited = 1, parked = 1, byte_waiters = 1, records = 1, cause = 1, waiting = 1 }
if not known[which] or #ARGV - FIRST + 1 > 250 then
  return redis.error_reply('BADARGS repair_leftovers: a kind of note, and at most 250 ids')
end

failure = sound_fault(base, queue.levels)
if failure then return failure end

local count = 0
for i = FIRST, #ARGV do
  local id = ARGV[i]
  local value = redis.call('HGET', base .. 'jobs', id)
  local alive = value and string.byte(value) ~= 33
  local dead = redis.call('ZSCORE', base .. 'dead', id)
  if which == 'cause' then
    if dead then
      count = count + redis.call('HSETNX', base .. 'causes', id, cjson.encode({ kind = 'rejected', type = '',
        message = 'its cause was lost', at = tonumber(dead) }))
    end
  elseif which == 'records' then
    if alive and not dead then
      count = count + records_forget(base, id)
    end
  elseif which == 'waiting' then
    local job = alive and not dead and value_parse(value)
    local key = job and rank(base, job)
    --- @each left(base, { id })
    local there = key and redis.call('LINDEX', key, (order_search(base, key, job))) == id
    --- @if found
    local places = {}
    if job then
      job.id = id
      --- @each places = found(base, job, places)
    end
    -- a turn is no place: who holds a job may have it
    for at = 1, #places, 2 do there = there or places[at] ~= 'turn' end
    --- @end
    if there then
      --- @each entered(base, queue.now, { id, value })
    end
    --- @if weigh
    local where = there and 'ready' or job and held_scan_holder(base, id) and 'held' or 'scheduled'
    if job then
      --- @each weigh(base, queue.now, { id, value }, where)
    end
    --- @end
    count = count + 1
  elseif which == 'causes' then
    if not dead then count = count + redis.call('HDEL', base .. 'causes', id) end
  elseif which == 'byte_waiters' then
    if not alive then
      wait_for_bytes_over(base, queue.now, { id })
      count = count + 1
    end
  elseif which == 'parked' then
    local member = alive and schedule_member(value_parse(value), id)
    if not member or not redis.call('ZSCORE', base .. 'scheduled', member) then
      count = count + redis.call('HDEL', base .. 'parked', id)
    end
  elseif not alive then
    count = count + redis.call('HDEL', base .. which, id)
  end
end
return { queue.now, count }
