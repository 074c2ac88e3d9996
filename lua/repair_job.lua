--- Leave a job in exactly one place: dead if it is dead, else held by the consumer that has it, else in its list or the
--- schedule; one that is nowhere goes back to its place, or to the schedule if it is not due. An id without a job
--- goes out of all places. It walks the queue's lists.
--- KEYS: meta, guard
--- ARGV: id, step, member, others...
---   step: place, or take = only take it out of the ready lists, to be placed by another call (where a list is not
---   sorted)
---   member: a member of `scheduled` that speaks of this job, or ""; others: consumers that are not registered
--- REPLY: {now, where it is: dead, held, ready, blocked, scheduled, deferred, gone, taken}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @hooks weigh
--- @include "queue/open"
--- @include "queue/sound"
--- @include "job/value"
--- @include "order/standing"
--- @include "order/levels"
--- @include "order/search"
--- @one rank
--- @include "consumer/notify"
--- @include "finish/dead_letter"
--- @include "result/records"
--- @include "consumer/most"

local meta = KEYS[1]
local id = ARGV[1]
local step = ARGV[2]
local member = ARGV[3]
local FIRST = 4

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if step ~= 'place' and step ~= 'take' then return redis.error_reply('BADARGS repair_job: place or take') end

local others = {}
for i = FIRST, #ARGV do others[#others + 1] = ARGV[i] end
failure = sound_fault(base, queue.levels, others)
if failure then return failure end

local value = redis.call('HGET', base .. 'jobs', id)
local marked = value and string.byte(value) == 33
if value and not marked and value_parse(value).damaged then
  -- no header: nothing could settle it; the bytes are kept, as a dead letter
  local job = { id = id, position = redis.call('HINCRBY', meta, 'seq', 1), enqueued = queue.now, level = 4, deliveries = 0,
    attempts = 0, max = 0, due = 0, crashes = 0, max_crashes = 0, expires = 0, envelope = value, damaged = true }
  redis.call('HINCRBY', meta, 'tailed', 1)
  local record = dead_letter_store(base, queue.now, job, cjson.encode({ kind = 'undecodable', type = 'Undecodable',
    message = 'its header was damaged', at = queue.now }))
  records_write(base, queue, { id, record })
  value = redis.call('HGET', base .. 'jobs', id)
end
local job = value and not marked and value_parse(value) or nil
local own, standing = '', ''
if job then
  job.id = id
  own, standing = schedule_member(job, id), select(2, standing_of(job))
end
local due = redis.call('ZSCORE', base .. 'scheduled', own) or redis.call('ZSCORE', base .. 'scheduled', member)
local dead = redis.call('ZSCORE', base .. 'dead', id)

local lists = {}
for _, level in ipairs(levels_list(queue.levels)) do
  for _, kind in ipairs({ 'due:', 'ready:' }) do
    local key = base .. kind .. level
    for _ = 1, #redis.call('LPOS', key, id, 'COUNT', 0) do lists[#lists + 1] = key end
  end
end
local function out_of_lists(keep)
  for _, key in ipairs(lists) do
    if key == keep then keep = nil else redis.call('LREM', key, -1, id) end
  end
end
local function out_of_schedule(keep)
  for _, stray in ipairs({ own, member }) do
    if stray ~= '' and stray ~= keep then redis.call('ZREM', base .. 'scheduled', stray) end
  end
  if keep ~= own then redis.call('HDEL', base .. 'parked', id) end
end

local placed = false
--- @if found
if job then
  job.id = id
  local spots = {}
  --- @each spots = found(base, job, spots)
  placed = spots[1] == 'heads' or spots[1] ~= nil and spots[1] ~= 'turn'
end
--- @end
local function out_of_places()
  --- @if unblock
  if placed then
    local was
    --- @each was = unblock(base, queue, job)
  end
  --- @end
  --- @if able
  -- it may stand in another class than its own
  local heads
  --- @each heads = heads(base)
  for _, key in ipairs(heads) do redis.call('ZREM', key, own) end
  --- @end
end

local names, holder = redis.call('ZRANGE', base .. 'consumers', 0, CONSUMERS_LAST), nil
local registered = #names
for i = FIRST, #ARGV do names[#names + 1] = ARGV[i] end
local function off_held(keep)
  for _, name in ipairs(names) do
    local held = base .. 'held:' .. name
    local spare = #redis.call('LPOS', held, id, 'COUNT', 0) - (name == keep and 1 or 0)
    if spare > 0 then
      redis.call('LREM', held, -spare, id)
      if name ~= keep then redis.call('RPUSH', base .. 'wake:' .. name, 'X' .. id) end
    end
  end
end
for i, name in ipairs(names) do
  if not holder and i <= registered and redis.call('LPOS', base .. 'held:' .. name, id) then holder = name end
end

--- @if heads
if member ~= '' and member ~= standing then
  local heads
  --- @each heads = heads(base)
  for _, key in ipairs(heads) do redis.call('ZREM', key, member) end
end
--- @end
if not job then
  -- a mark belongs into one list, an id without a job nowhere
  off_held(nil)
  out_of_schedule(nil)
  if not marked then redis.call('ZREM', base .. 'dead', id) end
  if marked and lists[1] then
    out_of_lists(lists[1])
    return { queue.now, 'gone' }
  end
  out_of_lists(nil)
  redis.call('HDEL', base .. 'jobs', id)
  return { queue.now, 'gone' }
end
if step == 'take' then
  out_of_lists(nil)
  out_of_places()
  return { queue.now, 'taken' }
end
if dead then
  --- @each left(base, { id })
  out_of_lists(nil)
  out_of_places()
  out_of_schedule(nil)
  off_held(nil)
  return { queue.now, 'dead' }
end
if holder then
  --- @each left(base, { id })
  out_of_lists(nil)
  out_of_places()
  out_of_schedule(nil)
  off_held(holder)
  --- @each weigh(base, queue.now, { id, value }, 'held')
  --- @each claim(base, job, holder, nil, queue.now)
  return { queue.now, 'held' }
end
off_held(nil)
--- @if awaits
local parents
--- @each parents = awaits(base, job)
if parents then
  out_of_lists(nil)
  out_of_places()
  out_of_schedule(nil)
  --- @each weigh(base, queue.now, { id, value }, 'scheduled')
  return { queue.now, 'deferred' }
end
redis.call('HDEL', base .. 'deferred', id)
--- @end
--- @each left(base, { id })
if not lists[1] and not placed and (due or job.due > queue.now) then
  out_of_schedule(own)
  redis.call('ZADD', base .. 'scheduled', due or job.due, own)
  --- @each weigh(base, queue.now, { id, value }, 'scheduled')
  if not queue.paused and not queue.timer then consumer_wake_timer(base, queue.now) end
  return { queue.now, 'scheduled' }
end
out_of_schedule(nil)
out_of_lists(nil)
out_of_places()
--- @if returned
--- @include "finish/end"
local over
--- @each over = returned(base, job, true)
if over then
  end_jobs(base, queue, { id }, 'R', over)
  return { queue.now, 'gone' }
end
--- @end
levels_use(meta, queue.levels, { [job.level] = true })
--- @each weigh(base, queue.now, { id, value }, 'ready')
if job.due > 0 then redis.call('HSET', meta, 'promoted', '1') end
--- @if shelf
local others = { job }
--- @each others = shelf(base, queue, others)
if not others[1] then
  if (queue.kept_back or 0) > 0 then return { queue.now, 'blocked' } end
  if not queue.paused then consumer_notify(base, queue.now, 1, queue.timer, queue.ranked) end
  return { queue.now, 'ready' }
end
--- @end
local key = rank(base, job)
local index, length = order_search(base, key, job)
if index == length then
  redis.call('RPUSH', key, id)
else
  redis.call('LINSERT', key, 'BEFORE', redis.call('LINDEX', key, index), id)
end
--- @each entered(base, queue.now, { id, value })
if not queue.paused then consumer_notify(base, queue.now, 1, queue.timer, queue.ranked) end
return { queue.now, 'ready' }
