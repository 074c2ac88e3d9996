--- @hooks audience
--- @include "consumer/ahead"
--- @include "refusal/ranks"
--- @include "consumer/wake_takers"
--- @include "order/lists_count"
--- @include "queue/constants"

--- Telling consumers of work that they can take, set by set.

--- The best consumer that waits and takes from a set, and its term; nil where none does. Nobody is notified before
--- those `notified` that are ahead. `except`: not this one. More than may have refused a job are looked at.
local function refusals_tell_best(base, terms, notified, except)
  local waiting = redis.call('ZRANGE', base .. 'interested', '0', WAKE_LAST, 'WITHSCORES')
  for i = 1, #waiting, 2 do
    local term = waiting[i] ~= except and refusals_term(base, waiting[i])
    if term and refusals_takes(term, terms) then
      local floor = notified and refusal_ranks_highest(notified, terms)
      if floor and ahead_priority(waiting[i + 1]) < floor then return nil end
      return waiting[i], term
    end
  end
end

--- How many jobs of a set are ready.
local function refusals_tell_ready(base, terms)
  return terms == '' and lists_count(base) or redis.call('ZCARD', base .. 'refused:' .. terms)
end

--- Of what became ready in this call, as far as it still is, able consumers are notified, best first, and no more
--- (Q-37, H-16). Up to `jobs` more of the lists, where it is not said what became ready, or the call is about a
--- consumer that leaves its work to others; and of those sets that it takes from, or of all, of which no consumer is
--- notified. `how` = {except=, idle=}: not this consumer; nothing of which a consumer is notified.
local function refusals_tell(base, now, jobs, timer, ranked, how)
  local fresh, any = REFUSALS.fresh, REFUSALS.fresh_any
  REFUSALS.fresh, REFUSALS.fresh_any = {}, false
  if redis.call('EXISTS', base .. 'interested') == 0 then return 0 end
  local except, notified = how and how.except, ahead_notified(base, 'term', how and how.except)
  local asked, open = {}, refusals_open(base)
  for _, terms in ipairs(REFUSALS.mine or open) do asked[terms] = true end
  local function best(terms)
    return refusals_tell_best(base, terms, ranked and notified or nil, except)
  end
  local woken = {}
  for _, terms in ipairs(open) do
    local need, idle = fresh[terms] or 0, not refusal_ranks_highest(notified, terms)
    if asked[terms] and (terms == '' and (REFUSALS.mine or not any) or terms ~= '' and idle) then
      need = math.max(need, jobs)
    end
    if how and how.idle and not idle then need = 0 end
    if need > 0 then need = math.min(need, refusals_tell_ready(base, terms)) end
    wake_takers(base, now, timer, woken, terms, need, refusals_takes, best)
  end
  return #woken
end
