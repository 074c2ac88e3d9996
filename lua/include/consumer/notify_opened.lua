--- @include "consumer/notify"

--- Jobs become ready because others are gone, where a policy keeps some back.

--- Tell who waits for them: `queue.opened` jobs that policies made ready in this step.
local function notify_opened(base, queue)
  if (queue.opened or 0) > 0 and not queue.paused then
    consumer_notify(base, queue.now, queue.opened, queue.timer, queue.ranked)
  end
end
