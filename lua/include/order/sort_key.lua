--- Where a job stands in its list: by due time, 0 where its header says none, and at the same instant by position.

--- Whether one {due=, position=, ...} stands before another one of the same list.
local function sort_key_before(one, other)
  return one.due < other.due or one.due == other.due and one.position < other.position
end

--- {due=, position=} of a stored value or mark ("!<position>,<due>"); nil where it says no such thing.
local function sort_key_read(value)
  if not value then return nil end
  local position, due = string.match(value, '^!(%d+),(%d+)$')
  if not position then position, due = string.match(value, '^(%d+),%-?%d+,%d+,%d+,%d+,%d+,(%d+)[,;|]') end
  if not position then position, due = string.match(value, '^(%d+),%-?%d+[;|]'), 0 end
  return position and { due = tonumber(due), position = tonumber(position) }
end
