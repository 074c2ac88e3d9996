--- @include "queue/constants"
--- @include "consumer/ahead"

--- Consumer priorities where not every consumer takes every job (Q-45): who is ahead is asked set by set.

--- The highest priority of those `notified` that take from a set; nil where none does.
local function refusal_ranks_highest(notified, terms)
  local highest
  for _, one in ipairs(notified) do
    if refusals_takes(one[2], terms) and (not highest or one[1] > highest) then highest = one[1] end
  end
  return highest
end

--- Of the sets that a consumer takes from those in which no consumer of a higher priority waits, or was notified; and
--- whether there are others.
local function refusal_ranks_left(base, consumer, open)
  local mine, kept = tonumber(consumer.priority) or 0, {}
  local ahead = ahead_notified(base, 'term', consumer.name)
  local waiting = redis.call('ZRANGE', base .. 'interested', '0', WAKE_LAST, 'WITHSCORES')
  for i = 1, #waiting, 2 do
    if waiting[i] ~= consumer.name then
      ahead[#ahead + 1] = { ahead_priority(waiting[i + 1]), refusals_term(base, waiting[i]) }
    end
  end
  for _, terms in ipairs(open) do
    if (refusal_ranks_highest(ahead, terms) or mine) <= mine then kept[#kept + 1] = terms end
  end
  return kept, #kept < #open
end
