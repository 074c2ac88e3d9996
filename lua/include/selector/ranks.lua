--- @include "consumer/ahead"

--- Consumer priorities where not every consumer takes from every class (Q-45): who is ahead is asked class by class.

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
    if first[2] and first[1] ~= consumer.name and ahead_priority(first[2]) > mine then ahead[#ahead + 1] = audience end
  end
  local notified = ahead_notified(base, 'audience', consumer.name)
  for _, class in ipairs(heard) do
    local behind = (ranks_highest(base, notified, class) or mine) > mine
    for _, audience in ipairs(ahead) do
      behind = behind or (class == '0' and audience == '0' or class ~= '0' and selectors_hear(base, audience, class))
    end
    if not behind then kept[#kept + 1] = class end
  end
  return kept, #kept < #heard
end
