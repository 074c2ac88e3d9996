--- @hooks pass
--- @one rank

--- Jobs that leave their places with a policy: those that are gone, or scheduled to come back at the tail, and those that
--- go to the tail now.

--- Returns how many jobs became ready by that.
local function moved_place(base, queue, moved, gone)
  for _, job in ipairs(moved) do gone[#gone + 1] = job end
  local opened, kept_back = queue.opened, queue.kept_back
  queue.opened, queue.kept_back = 0, 0
  --- @each pass(base, queue, gone)
  local rest = moved
  --- @each rest = shelf(base, queue, rest)
  for _, job in ipairs(rest) do redis.call('RPUSH', rank(base, job), job.id) end
  local ready = queue.opened + #moved - queue.kept_back
  queue.opened, queue.kept_back = opened, kept_back
  return ready
end
