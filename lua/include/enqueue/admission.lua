--- @hooks displace
--- @hooks fit
--- @hooks overdue

--- What policies say of an enqueue before anything is written: what makes room for it, whether there is room, and what
--- is to be seen to first.

--- Sets `step.displaced`, what goes, and `step.overdue`, what is overdue. Returns an error reply where the jobs cannot
--- be stored.
local function admission_fault(step)
  local base, plan, fault = step.base, step.plan, nil
  --- @if meets
  if plan then
    --- @include "queue/sound_jobs"
    local tags = {}
    for i, run in ipairs(plan) do tags[i] = run.tags end
    fault = sound_jobs(base, tags)
    if fault then return fault end
  end
  --- @end
  --- @if displace
  --- @include "enqueue/arrivals"
  local displaced = { victims = {}, gone = {}, ready = plan and arrivals_count(plan, step.ids) or step.accepted }
  --- @if weight
  displaced.bytes = arrivals_bytes(step.ids, step.arguments, step.first)
  --- @end
  --- @each displace(base, plan and arrivals_of(plan, step.ids) or {}, displaced)
  step.displaced = displaced
  if displaced.victims[1] or displaced.trims then
    --- @include "queue/sound"
    local all = step.levels .. ',4'
    for _, run in ipairs(plan or {}) do all = all .. ',' .. run.level end
    fault = sound_fault(base, all)
    if fault then return fault end
  end
  --- @end
  --- @if fit
  if not step.fitted then
    local request, full = step.request, nil
    request.jobs = step.accepted
    --- @if weight
    --- @include "enqueue/arrivals"
    request.bytes, request.largest = arrivals_bytes(step.ids, step.arguments, step.first)
    --- @end
    --- @if displace
    request.victims = displaced.victims
    request.gone = #request.victims
    --- @end
    --- @each full = fit(base, request)
    if full then return full end
  end
  --- @end
  --- @if overdue
  -- a queue that nobody serves is swept by who enqueues; a key of another type is met here, where nothing is changed yet
  local overdue
  if plan then
    --- @each overdue = overdue(base, step.now)
  end
  step.overdue = overdue
  if overdue then
    --- @include "queue/sound"
    fault = sound_fault(base, step.levels)
    --- @if meets
    --- @include "queue/sound_swept"
    fault = fault or sound_swept(base, step.now, {})
    --- @end
  end
  --- @end
  return fault
end
