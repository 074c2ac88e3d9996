--- @include "consumer/notify"
--- @include "consumer/notify_opened"
--- @include "pull/sound"
--- @include "schedule/promote"

--- A job is due by the clock, and becomes ready in the next step that looks. A step that compares jobs with each other,
--- or passes something on, looks first: it finds the queue as if each job had become ready at the moment it was due.
--- So it does with ticks of schedules while a pool is there; else they are missed, and which of these become jobs is
--- decided by the pull or the renewal that comes next.

--- Rounds of PROMOTE_MAX jobs that one step makes ready at the most, and rounds of ticks.
local RIPEN_ROUNDS = 4

--- Make the ticks into jobs that are due. False if a key is damaged: nothing is changed then.
local function ripen_ticks(base, queue)
  --- @if fires
  --- @include "tick/attended"
  if queue.paused or queue.fired or not attended_since(base, queue.now) then return true end
  for _ = 1, RIPEN_ROUNDS do
    local fires
    --- @each fires = fires(base, queue)
    if not fires then break end
    --- @include "queue/sound"
    --- @include "queue/sound_jobs"
    if sound_fault(base, '9,8,7,6,5,4,3,2,1,0') or sound_jobs(base, fires.tags) then return false end
    --- @each fire(base, queue, fires)
    if #fires.due == 0 then break end
  end
  --- @end
  return true
end

--- `taker`: the consumer that looks for work in this step; without one, consumers are notified of the new ready jobs. A
--- damaged key leaves everything as it was: the step itself, or the next pull, meets that key and names it.
local function ripen_due(base, queue, taker)
  if not ripen_ticks(base, queue) then return end
  local opened, all = queue.opened, 0
  queue.opened = 0
  for _ = 1, RIPEN_ROUNDS do
    local members = promote_members(base, queue.now, PROMOTE_MAX)
    if #members == 0 or sound_due(base, queue, taker or '', members) then break end
    all = all + promote_due(base, queue, members, taker)
    queue.quiet = false
    -- some may have ended, each with a row
    queue.rows = tonumber(redis.call('HGET', base .. 'meta', 'history_rows')) or 0
  end
  if not taker then
    if all > 0 and not queue.paused then consumer_notify(base, queue.now, all, queue.timer, queue.ranked) end
    notify_opened(base, queue)
    queue.timer = redis.call('HGET', base .. 'meta', 'timer')
  end
  queue.opened, queue.kept_back = opened, nil
end
