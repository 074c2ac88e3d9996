--- @hooks instead
--- @hooks replace

--- Jobs of an enqueue whose unique keys other jobs have: those are the answer, or are replaced.

--- Sets `step.uniques`, and takes the answered ones from `step.accepted`. Returns an error reply where one is refused.
local function owners_answer(step, over)
  local uniques = {
    now = step.now, over = over, timer = step.timer, paused = step.paused, index = {}, answered = {}, replaced = {},
  }
  step.uniques = uniques
  if not step.plan then return nil end
  local fault
  --- @each fault = instead(step.base, step.plan, step.ids, uniques)
  if fault then return fault end
  step.accepted = step.accepted - #uniques.answered / 3
  if not uniques.replaced[1] then return nil end
  --- @include "queue/sound"
  fault = sound_fault(step.base, step.levels)
  if fault then return fault end
  local arguments, first = step.arguments, step.first
  for _, one in ipairs(uniques.replaced) do
    if one.over then arguments[first + 2 * one.over - 1] = arguments[first + 2 * one.at - 1] end
  end
end

--- Gives jobs that are replaced what the new ones say.
local function owners_replace(step)
  if not step.uniques.replaced[1] and not step.uniques.cut then return end
  --- @each replace(step.base, step.uniques, step.arguments, step.first)
end
