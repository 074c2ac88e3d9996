--- Who hears of an enqueue.

--- Notifies consumers of ready jobs, who watches the schedule, and browsers.
local function telling_all(step)
  local base, now = step.base, step.now
  if step.waiters[1] and step.ready > 0 and not step.taker then
    --- @include "consumer/notify"
    consumer_notify(base, now, step.ready, step.timer, step.ranked)
  end
  if step.scheduled then
    --- @include "schedule/add"
    -- after the other consumers were notified: one that is notified now looks at the schedule itself
    schedule_add(base, step.scheduled)
    if not step.paused then schedule_add_watch(base, now, step.scheduled.soonest, step.timer) end
  end
  if step.browsing then
    --- @include "consumer/browsers"
    browsers_tell(base)
  end
end
