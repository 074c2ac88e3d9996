--- @include "queue/constants"

--- Consumer priorities where not every consumer takes every job (Q-45): who is ahead is asked set by set.

--- The priority in a score of `interested`.
local function refusal_ranks_of(score)
  return -math.floor(tonumber(score) / 68719476736)
end

--- Those that were notified, may still take a job, and are not `except`: {{priority, term}, ...}.
local function refusal_ranks_told(base, except)
  local notified = {}
  for _, name in ipairs(redis.call('ZRANGE', base .. 'notified', '0', WAKE_LAST)) do
    if name ~= except then
      local row = redis.call('HMGET', base .. 'consumer:' .. name, 'priority', 'jobs', 'term')
      if (tonumber(row[2]) or 0) > redis.call('LLEN', base .. 'held:' .. name) then
        notified[#notified + 1] = { tonumber(row[1]) or 0, row[3] or '0' }
      end
    end
  end
  return notified
end

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
  local ahead = refusal_ranks_told(base, consumer.name)
  local waiting = redis.call('ZRANGE', base .. 'interested', '0', WAKE_LAST, 'WITHSCORES')
  for i = 1, #waiting, 2 do
    if waiting[i] ~= consumer.name then
      ahead[#ahead + 1] = { refusal_ranks_of(waiting[i + 1]), refusals_term(base, waiting[i]) }
    end
  end
  for _, terms in ipairs(open) do
    if (refusal_ranks_highest(ahead, terms) or mine) <= mine then kept[#kept + 1] = terms end
  end
  return kept, #kept < #open
end
