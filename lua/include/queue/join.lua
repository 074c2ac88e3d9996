--- A queue joins a kind where a call needs a policy that it does not have yet, and that has nothing to rebuild.

--- Whether a queue with this stamp (false: it has none) may become one of this script's kind: it has none but policies
--- of that, and lacks none but those that may be joined.
local function join_may(stamp)
  --- @stamp
  --- @joins
  local has = {}
  for word in string.gmatch(stamp or '1', '%S+') do has[word] = true end
  if stamp == '1' or not stamp then has.levels = true end
  for word in string.gmatch(STAMP, '%S+') do
    if not has[word] and not JOINS[word] then return false end
    has[word] = nil
  end
  return next(has) == nil
end
