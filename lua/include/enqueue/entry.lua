--- @hooks weigh
--- @hooks owned
--- @hooks stays
--- @hooks entered
--- @hooks defers
--- @hooks claim
--- @hooks shelf
--- @hooks trim
--- @include "queue/schema_stamp"
--- @if owned
--- @include "enqueue/owners"
--- @end

--- The new jobs of an enqueue become the queue's, and policies take them into what they keep.

--- `step.ready` is how many others may be notified of then.
local function entry_store(step)
  local base, now, plan, taker, stored = step.base, step.now, step.plan, step.taker, step.stored
  redis.call('HSET', base .. 'jobs', unpack(stored))
  --- @if weigh
  local where = taker and 'held' or nil
  --- @each weigh(base, now, stored, where)
  --- @end
  --- @if owned
  if plan then
    --- @each owned(base, now, step.uniques.index, taker)
    owners_replace(step)
  end
  --- @end
  --- @each stays(base)
  if step.fresh then schema_stamp(base .. 'meta') end
  --- @if entered
  if plan and not taker then
    -- before those leave that their parents let go at once
    --- @each entered(base, now, stored)
  end
  --- @end
  --- @if defers
  if plan and (plan.deferred or plan.dependants or plan.joined) then
    --- @each defers(base, plan, now)
  end
  --- @end
  if step.ready > 0 and (plan or step.levels ~= '4') then
    --- @include "order/levels"
    levels_use(base .. 'meta', step.levels, step.lists)
  end
end

--- Takes them to the places that policies have for them, and ends what is displaced.
local function entry_place(step)
  --- @if displace
  if step.displaced.victims[1] then
    --- @include "queue/open"
    --- @include "finish/displaced"
    displaced_end(step.base, queue_open(step.base), step.displaced)
  end
  --- @end
  --- @if shelf
  local plan, taker = step.plan, step.taker
  if plan and plan.placed then
    if taker then
      --- @each claim(step.base, plan.placed[1], nil, taker.name, step.now)
    else
      local state, others = { now = step.now, displaced = step.displaced }, plan.placed
      --- @each others = shelf(step.base, state, others)
      step.ready = step.ready - (state.kept_back or 0)
    end
  end
  --- @end
  --- @if trim
  if step.displaced.trims and not step.taker then
    local left
    --- @each left = trim(step.base, false)
    step.ready = math.min(step.ready, left)
  end
  --- @end
end
