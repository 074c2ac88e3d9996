--- Say what became of jobs that a consumer holds, and pull the next ones, in one step.
--- KEYS: meta, guard
--- ARGV: consumer, term, jobs, bytes, freed, batch, rows, groups, items...
---   jobs, bytes: the consumer's whole window after this call (bytes 0: no limit); jobs "-1": settle only, no pull
---   freed: bytes of the settled jobs' values; batch, rows: packed history rows of the items, in their order
---   groups: "<ack>" or "<ack>,<done>,<retry>,<reject>,<release>": counts of items, in this order:
---   ack: id | done: id, keep ms ("" = the queue's), result | retry: id, delay ms, place (old, head, tail, park,
---   aside; elsewhere: at once, uncounted, and not to this consumer again), charge, how often it was delivered before
---   this time ("" = not said), error | reject: id, cause | release: id
--- REPLY: {now, state, timer, {ids refused because this consumer does not hold them}, behind, id, value, ...}
---   timer: ms until the next due job where this consumer is to watch it, else -1
---   behind: the id that this consumer held last before the new ones, "" where there is none (X-25)
--- ERRORS: BADARGS | DAMAGED | GONE | SCHEMA
--- @hooks audience
--- @include "queue/row"
--- @include "consumer/row"
--- @hooks overdue

local meta = KEYS[1]
local consumer = ARGV[1]
local term = ARGV[2]
local jobs = ARGV[3]
local bytes = ARGV[4]
local freed = ARGV[5]
local batch = ARGV[6]
local rows = ARGV[7]
local groups = ARGV[8]
local FIRST = 9

local base = string.sub(meta, 1, -5)
local row, mine = queue_row(base), consumer_row(base, consumer)
local settled, reply = false, nil
--- @if vacated
local crowded
if jobs == '-1' then
  --- @each crowded = crowded(base)
  if type(crowded) == 'table' then return crowded end
end
--- @end
--- @fast
-- one success, and nothing else is held
if groups == '1' and #ARGV == FIRST or groups == '0,1,0,0,0' and #ARGV == FIRST + 2 and ARGV[FIRST + 1] == '' then
  --- @include "settle/fast_path"
  settled, reply = settle_fast_path(base, row, mine, consumer, term, jobs, bytes, batch, rows, ARGV[FIRST],
    ARGV[FIRST + 2])
  if reply then return reply end
end
--- @end

--- @include "queue/open"
--- @include "consumer/open"
--- @include "consumer/window"
--- @include "pull/pull"
local queue, me, failure
queue, failure = queue_open(base, row)
--- @if refuse
--- @include "queue/join"
--- @stamp
local joins = false
if failure then
  for i = FIRST, #ARGV do joins = joins or ARGV[i] == 'elsewhere' end
  joins = joins and join_may(row[1])
  if joins then
    row[1] = STAMP
    queue, failure = queue_open(base, row)
  end
end
--- @end
if failure then return failure end
me, failure = consumer_open(base, consumer, term, mine)
if failure then return failure end

local stale, ready, wrote = {}, 0, true
if settled then
  me.held = 0
else
  --- @include "settle/outcomes"
  --- @include "history/batch"
  if me.browses then return redis.error_reply('BADARGS settle: a browser holds nothing') end
  if not (tonumber(jobs) and tonumber(bytes) and tonumber(freed) and tonumber(rows)) then
    return redis.error_reply('BADARGS settle: window, bytes and rows are numbers')
  end
  local said
  said, failure = outcomes_read(base, queue, me, groups, ARGV, FIRST)
  if failure then return failure end
  --- @if ripen
  local looks_first = not queue.quiet
  --- @if fires
  looks_first = true
  --- @end
  if looks_first then
    --- @each ripen(base, queue, tonumber(jobs) >= 0 and consumer or nil)
    me.state = redis.call('HGET', base .. 'consumer:' .. consumer, 'state')
  end
  --- @end
  queue.turns = records_due(queue)
  local looks = said.fates or queue.turns or not queue.quiet
  --- @if done
  looks, queue.pulls = true, tonumber(jobs) >= 0
  --- @end
  if looks then
    --- @include "settle/sound"
    failure = settle_sound(base, queue, said, tonumber(jobs) < 0)
    if failure then return failure end
  end
  freed, failure = outcomes_take(base, queue, me, said, freed)
  failure = failure or outcomes_end(base, queue, me, said, ARGV, batch, rows)
  if failure then return failure end
  --- @if refuse
  --- @include "queue/schema_stamp"
  if joins then schema_stamp(meta) end
  --- @end
  if said.fates then ready = said.finish_unfinished(base, queue, me, said, batch, rows) end
  if me.bytes > 0 then me.held_bytes = me.held_bytes - freed end
  stale, wrote = said.stale, said.total > 0
end

--- @if pass
ready = ready + (queue.opened or 0)
--- @end
if tonumber(jobs) < 0 then
  if ready > 0 and not queue.paused then
    --- @include "consumer/notify"
    consumer_notify(base, queue.now, ready, queue.timer, queue.ranked)
    me.state = redis.call('HGET', base .. 'consumer:' .. consumer, 'state')
  end
  window_account(base, me, wrote)
  --- @if vacated
  if crowded then
    --- @each vacated(base, { now = queue.now })
  end
  --- @end
  return { queue.now, me.state, -1, stale, '' }
end
window_grant(base, me, jobs, bytes)
local taken, timer, behind = pull_jobs(base, queue, me)
if not taken then
  --- @include "queue/refused"
  if not wrote then return refused_reply(timer) end
  -- what is settled stays so: the pull that follows is refused, and says why
  window_account(base, me, wrote)
  return { queue.now, 'notified', -1, stale, '' }
end
window_account(base, me, wrote or #taken > 0)
return { queue.now, me.state, timer, stale, behind, unpack(taken) }
