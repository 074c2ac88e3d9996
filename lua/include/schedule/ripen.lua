--- @include "consumer/notify"
--- @include "consumer/notify_opened"
--- @include "pull/sound"
--- @include "schedule/promote"

--- A job is due by the clock, and becomes ready in the next step that looks. A step that compares jobs with each other,
--- or passes something on, looks first: it finds the queue as if each job had become ready at the moment it was due. Ticks
--- of schedules become jobs in pulls and renewals alone: which of them are missed depends on who looks.

--- Rounds of PROMOTE_MAX jobs that one step makes ready at the most.
local RIPEN_ROUNDS = 4

--- `taker`: the consumer that looks for work in this step; without one, consumers are notified of the new ready jobs. A
--- damaged key leaves everything as it was: the step itself, or the next pull, meets that key and names it.
local function ripen_due(base, queue, taker)
  local opened, all = queue.opened, 0
  queue.opened = 0
  for _ = 1, RIPEN_ROUNDS do
    local members = promote_members(base, queue.now, PROMOTE_MAX)
    if #members == 0 or sound_due(base, queue, taker or '', members) then break end
    all = all + promote_due(base, queue, members, taker)
    queue.quiet = false
  end
  if not taker then
    if all > 0 and not queue.paused then consumer_notify(base, queue.now, all, queue.timer, queue.ranked) end
    notify_opened(base, queue)
    queue.timer = redis.call('HGET', base .. 'meta', 'timer')
  end
  queue.opened, queue.kept_back = opened, nil
end
