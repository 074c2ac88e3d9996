--- @include "schedule/member"

--- A job's place among those of all levels, as one number: a higher level first; in a level those that were due, by due
--- time, and then the others, by position. At the same instant the members of a sorted set decide, by position. It is
--- written in decimal digits, so that a member of `scheduled` has those of a job without a due time: one of the level,
--- a 5, thirteen of the position.

--- What lies between two levels, and between those that were due and the others: all of it is exact below 2^53.
local SCORE_LEVEL, SCORE_READY = 1e14, 5e13

local function score_of(level, due, position)
  if due > 0 then return (9 - level) * SCORE_LEVEL + math.min(due, SCORE_READY - 1) end
  return (9 - level) * SCORE_LEVEL + SCORE_READY + position
end

--- The score of a member without a due time, as text.
local function score_text(member)
  return string.sub(member, 2, 2) .. '5' .. string.sub(member, 4, MEMBER_PREFIX)
end

--- The score of all jobs of a level that have sort keys, as text: behind the others, among each other by member.
local function score_behind(level)
  return string.format('%d', 9 - level) .. '99999999999999'
end

--- How many members of a sorted set with these scores are of a level.
local function score_count(key, level)
  local least = (9 - level) * SCORE_LEVEL
  return redis.call('ZCOUNT', key, string.format('%d', least), '(' .. string.format('%d', least + SCORE_LEVEL))
end
