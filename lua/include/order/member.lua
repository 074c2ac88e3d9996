--- @include "schedule/member"

--- Members of the sorted sets that ready jobs stand in: those of `scheduled`; of a job with a sort key "s<key>\0<position>"
--- and the id, so that they stand by key. A key is hexadecimal: its bytes are in the order of what it was made of.

--- Digits of a position.
local MEMBER_DIGITS = 14

--- Where the id begins.
local function member_end(member)
  if string.byte(member) ~= 115 then return MEMBER_PREFIX + 1 end
  return (string.find(member, '\0', 1, true) or #member) + MEMBER_DIGITS + 1
end

local function member_id(member)
  return string.sub(member, member_end(member))
end

local function member_position(member)
  local last = member_end(member) - 1
  return tonumber(string.sub(member, last - MEMBER_DIGITS + 1, last)) or 0
end

--- Whether one stands before another one of the same score. Lua's own comparison is that of the server's language.
local function member_before(one, other)
  for i = 1, math.min(#one, #other) do
    local its, others = string.byte(one, i), string.byte(other, i)
    if its ~= others then return its < others end
  end
  return #one < #other
end
