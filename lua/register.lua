--- Add a consumer to the queue, with a lease and a term of its own. Said again with the same token, because the reply
--- was lost, it changes nothing and answers the same term.
--- KEYS: meta, guard
--- ARGV: consumer, mode, priority, jobs, bytes, lease, slots, worker, limits, token
---   mode: acquire | browse, in a queue with selectors followed by one (`rqueue.model.selector`); jobs, bytes: its window; lease: ms; slots: jobs it can run at once
---   limits: what its tasks allow: JSON, {task: [attempts, crashes]}, 0 where a task says nothing, "*" for all; "" =
---   none; token: of the process that registers, "" = none
--- REPLY: {now, term, state}; state notified: work waits, pull
--- ERRORS: BADARGS | DAMAGED | EXISTS | SCHEMA | REFUSED: the queue takes no further consumer; and one of a policy
--- @hooks audience
--- @include "queue/open"
--- @include "queue/schema_stamp"
--- @include "queue/sound"
--- @include "consumer/lists"
--- @include "consumer/notify_next"
--- @include "consumer/most"

local meta = KEYS[1]
local consumer = ARGV[1]
local mode = ARGV[2]
local priority = ARGV[3]
local jobs = ARGV[4]
local bytes = ARGV[5]
local lease = ARGV[6]
local slots = ARGV[7]
local worker = ARGV[8]
local limits = ARGV[9]
local token = ARGV[10]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
--- @if select
--- @include "queue/join"
--- @stamp
local selector
mode, selector = string.match(mode, '^(%l+) ?(.*)$')
if failure and (selector or '') ~= '' then
  local row = queue_row(base)
  if join_may(row[1]) then
    row[1] = STAMP
    queue, failure = queue_open(base, row)
  end
end
--- @end
if not queue then return failure end
jobs, bytes, lease, priority = tonumber(jobs), tonumber(bytes), tonumber(lease), tonumber(priority)
-- a comparison with nan is false
if not (jobs and bytes and lease and priority and tonumber(slots) and worker and token)
  or not (lease > 0 and math.abs(priority) <= 10000) or jobs ~= jobs or bytes ~= bytes or (mode ~= 'acquire' and mode ~= 'browse') then
  return redis.error_reply('BADARGS register: mode acquire or browse, priority within 10000, numbers for the rest')
end
if consumer == '' or string.find(consumer, '%c') then
  return redis.error_reply('BADARGS register: a name without control characters')
end
if limits ~= '' then
  local known, said = pcall(cjson.decode, limits)
  known = known and type(said) == 'table'
  for _, of_task in pairs(known and said or {}) do
    known = known and type(of_task) == 'table' and type(of_task[1]) == 'number' and type(of_task[2]) == 'number'
  end
  if not known then return redis.error_reply('BADARGS register: limits that cannot be read') end
end
if redis.call('EXISTS', base .. 'consumer:' .. consumer) == 1 then
  local row = redis.call('HMGET', base .. 'consumer:' .. consumer, 'token', 'term', 'state')
  local until_ = redis.call('ZSCORE', base .. 'consumers', consumer)
  if token ~= '' and row[1] == token and row[2] and row[3] and until_ and tonumber(until_) >= queue.now then
    return { queue.now, row[2], row[3] }
  end
  return redis.error_reply('EXISTS a consumer of this name is registered')
end
if redis.call('ZCARD', base .. 'consumers') >= CONSUMERS_MOST then
  return redis.error_reply('REFUSED the queue has 10000 consumers, the most that one takes')
end

--- @each failure = closed()
--- @each failure = refers()
--- @each failure = admits(base, mode)
if failure then return failure end
failure = sound_fault(base, queue.levels, { consumer })
--- @each failure = select(base, selector)
if failure then return failure end

-- first write: frees (README)
redis.call('DEL', base .. 'wake:' .. consumer)
schema_stamp(meta)
local term = redis.call('HINCRBY', meta, 'term', 1)
if priority ~= 0 then
  redis.call('HSET', meta, 'ranked', '1')
  queue.ranked = true
end
redis.call('ZADD', base .. 'consumers', queue.now + lease, consumer)
redis.call('HSET', base .. 'consumer:' .. consumer, 'term', term, 'priority', priority, 'mode', mode, 'jobs', jobs,
  'bytes', bytes, 'held_bytes', 0, 'slots', slots, 'worker', worker, 'since', string.format('%d', queue.now))
if limits ~= '' then redis.call('HSET', base .. 'consumer:' .. consumer, 'limits', limits) end
if token ~= '' then redis.call('HSET', base .. 'consumer:' .. consumer, 'token', token) end
--- @if joined
local standby
--- @each standby = joined(base, consumer, mode, priority, queue)
--- @end
--- @each listens(base, consumer, selector)
--- @each audience(base, consumer)
local state
if mode == 'browse' then
  state = jobs > 0 and 'browsers' or 'not_interested'
  redis.call('HSET', meta, 'browsing', '1')
elseif jobs <= 0 then
  state = 'not_interested'
--- @if joined
elseif standby then
  state = 'not_interested'
--- @end
elseif not queue.paused and notify_next_work_waits(base, queue) then
  state = 'notified'
else
  state = 'interested'
end
consumer_lists_move(base, queue.now, consumer, nil, state, priority)
if state == 'interested' then
  -- where nobody watches the schedule, one of those that wait pulls and learns the next due time: perhaps this one
  notify_next(base, queue)
  state = redis.call('HGET', base .. 'consumer:' .. consumer, 'state')
end
return { queue.now, tostring(term), state }
