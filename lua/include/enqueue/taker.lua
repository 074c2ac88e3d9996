--- @hooks able
--- @hooks busy

--- Direct delivery: nothing waits before the one job, and a waiting consumer has credit for it.

--- Sets `step.taker`, who gets the job, nil where nobody does, and `step.give`, which delivers it. Returns an error reply
--- where nobody may get a job that is to be delivered now, or those who are notified cannot be.
local function taker_find(step)
  local base, plan, single = step.base, step.plan, step.total == 1
  --- @if able
  if single and plan and step.waiters[1] then
    local waiters
    --- @each waiters = able(base, plan[1])
    step.waiters = waiters
  end
  --- @end
  local waiters, busy = step.waiters, false
  --- @if busy
  if single and plan then
    busy = nil
    --- @each busy = busy(base, plan[1], step.now)
  end
  --- @end
  local taker
  local run = plan and plan[1]
  -- nobody gets one that expired on its way here
  local away = run and (run.due > 0 or run.age > 0 and (run.expires or 0) > 0 and run.expires < step.now)
  if single and step.how ~= '2' and waiters[1] and not away and not busy then
    --- @include "deliver/direct"
    local size = #step.arguments[step.first + 1] + 64
    taker = deliver_direct_consumer(base, step.now, step.levels, step.ranked, waiters, size)
    step.taker, step.give = taker, deliver_direct
  end
  if step.how == '1' and not taker then
    return redis.error_reply('NOCONSUMER no consumer waits with credit for this job')
  end
  if waiters[1] and (not taker or taker.name == step.timer) or step.browsing then
    --- @include "enqueue/sound"
    return enqueue_sound(base, taker and {} or { unpack(waiters, 1, step.accepted) }, step)
  end
end
