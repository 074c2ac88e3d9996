--- @include "consumer/ahead"
--- @include "consumer/wake_takers"
--- @include "order/unlabelled"
--- @include "queue/constants"
--- @hooks audience
--- @include "selector/ranks"

--- Telling consumers of work that they can take, class by class.

--- The best consumer that waits and hears a class, its priority and its audience; nil where none does, or where one of
--- those `notified` is ahead of it. `except`: not this one.
local function selectors_tell_best(base, class, notified, except)
  local best, score, its
  local function look(audience)
    local some = redis.call('ZRANGE', base .. 'interested:' .. audience, '0', '1', 'WITHSCORES')
    local at = some[1] == except and 3 or 1
    local found = tonumber(some[at + 1])
    if found and (not score or found < score) then best, score, its = some[at], found, audience end
  end
  look('0')
  if class ~= '0' then
    for audience in pairs(selectors_hears(base)) do
      if selectors_hear(base, audience, class) then look(audience) end
    end
  end
  local floor = best and notified and ranks_highest(base, notified, class)
  if not best or floor and ahead_priority(score) < floor then return nil end
  return best, its
end

--- How many jobs of a class are ready.
local function selectors_tell_ready(base, class)
  return class == '0' and unlabelled_count(base) or redis.call('ZCARD', base .. 'class:' .. class)
end

--- Notify able consumers, best first and no more (Q-37, H-16), of what became ready in this call, as far as it still
--- is. Where the call is about a consumer that leaves its work to others, they are notified of its classes, one by one;
--- where neither is known of all classes, of each up to `jobs`. `how` = {except=, idle=}: not this consumer; only
--- classes of which no consumer is notified.
local function selectors_tell(base, now, jobs, timer, ranked, how)
  selectors_open(base)
  local needs, order = SELECTORS.fresh, {}
  local asked = SELECTORS.mine or not SELECTORS.fresh_any and selectors_hearable(base, '0') or {}
  SELECTORS.fresh, SELECTORS.fresh_any = {}, false
  for _, class in ipairs(asked) do needs[class] = math.max(needs[class] or 0, jobs) end
  for class in pairs(needs) do order[#order + 1] = class end
  table.sort(order, function(one, other) return tonumber(one) < tonumber(other) end)
  local except = how and how.except
  local notified = (ranked or how and how.idle) and ahead_notified(base, 'audience', except) or nil
  local function takes(audience, class) return selectors_hear(base, audience, class) end
  local function best(class) return selectors_tell_best(base, class, ranked and notified or nil, except) end
  local woken = {}
  for _, class in ipairs(order) do
    local need = math.min(needs[class], selectors_tell_ready(base, class))
    if how and how.idle and ranks_highest(base, notified, class) then need = 0 end
    wake_takers(base, now, timer, woken, class, need, takes, best)
  end
  return #woken
end
