--- @include "queue/constants"

--- Consumer priorities where not every consumer takes from every class (Q-45): who is ahead is asked class by class.

--- The priority in a score of `interested`.
local function ranks_of(score)
  return -math.floor(tonumber(score) / 68719476736)
end

--- Those that were notified, may still take a job, and are not `except`: {{priority, audience}, ...}.
local function ranks_notified(base, except)
  local notified = {}
  for _, name in ipairs(redis.call('ZRANGE', base .. 'notified', '0', WAKE_LAST)) do
    if name ~= except then
      local row = redis.call('HMGET', base .. 'consumer:' .. name, 'priority', 'jobs', 'audience')
      if (tonumber(row[2]) or 0) > redis.call('LLEN', base .. 'held:' .. name) then
        notified[#notified + 1] = { tonumber(row[1]) or 0, row[3] or '0' }
      end
    end
  end
  return notified
end

--- The highest priority of those `notified` that take from a class; nil where none does.
local function ranks_highest(base, notified, class)
  local highest
  for _, one in ipairs(notified) do
    if selectors_hear(base, one[2], class) and (not highest or one[1] > highest) then highest = one[1] end
  end
  return highest
end

--- Of the classes that a consumer hears those in which nobody of a higher priority waits, or was notified; and whether
--- there are others.
local function ranks_left(base, consumer, heard)
  local mine, ahead, kept = tonumber(consumer.priority) or 0, {}, {}
  local hears = { ['0'] = true }
  for audience in pairs(selectors_hears(base)) do hears[audience] = true end
  for audience in pairs(hears) do
    local first = redis.call('ZRANGE', base .. 'interested:' .. audience, '0', '0', 'WITHSCORES')
    if first[2] and first[1] ~= consumer.name and ranks_of(first[2]) > mine then ahead[#ahead + 1] = audience end
  end
  local notified = ranks_notified(base, consumer.name)
  for _, class in ipairs(heard) do
    local behind = (ranks_highest(base, notified, class) or mine) > mine
    for _, audience in ipairs(ahead) do
      behind = behind or (class == '0' and audience == '0' or class ~= '0' and selectors_hear(base, audience, class))
    end
    if not behind then kept[#kept + 1] = class end
  end
  return kept, #kept < #heard
end
