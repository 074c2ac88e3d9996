--- @include "give_back"
--- @include "consumers"
--- @include "pass_on"

--- A consumer leaves: what it held goes back (a slice at a time), it is taken off all lists, and the work it was told
--- of is passed on (Q-39, Q-58).

local LEAVE_SLICE = 200

--- Give back one slice of `most` jobs (nil: LEAVE_SLICE), last positions first, so that heads stay right between slices
--- (H-06). `charged`: id -> charge, or a function that says so of (jobs of the slice, number of jobs left). Returns how
--- many are left in its hands, and how many left them.
local function leave_slice(base, queue, consumer, charged, most)
  local held = base .. 'held:' .. consumer
  local ids = redis.call('LRANGE', held, -(most or LEAVE_SLICE), -1)
  if #ids == 0 then return 0, 0 end
  local left = redis.call('LLEN', held) - #ids
  local jobs = give_back_read(base, ids)
  if type(charged) == 'function' then charged = charged(jobs, left) end
  -- first: Redis lets a script that has already written go on when memory is short (H-10)
  redis.call('LTRIM', held, 0, -#ids - 1)
  local back = give_back_jobs(base, consumer, jobs, charged, queue)
  if back > 0 and not queue.paused then
    consumer_notify(base, queue.now, back, queue.timer, queue.ranked)
    queue.timer = redis.call('HGET', base .. 'meta', 'timer')
  end
  return left, #ids
end

--- Nothing is left in its hands: take it off.
local function leave_lists(base, queue, consumer)
  local state = redis.call('HGET', base .. 'consumer:' .. consumer, 'state')
  redis.call('ZREM', base .. 'consumers', consumer)
  redis.call('ZREM', base .. 'interested', consumer)
  redis.call('ZREM', base .. 'notified', consumer)
  redis.call('SREM', base .. 'not_interested', consumer)
  redis.call('SREM', base .. 'browsers', consumer)
  redis.call('DEL', base .. 'consumer:' .. consumer, base .. 'wake:' .. consumer, base .. 'running:' .. consumer)
  if redis.call('EXISTS', base .. 'browsers') == 0 then redis.call('HDEL', base .. 'meta', 'browsing') end
  if state ~= 'not_interested' then pull_pass_on(base, queue) end
end
