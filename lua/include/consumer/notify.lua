--- @include "queue/constants"
--- @include "consumer/highest"
--- @include "consumer/wake"

--- Tell as many interested consumers as `jobs` arrivals need, best first, and no more (Q-37, H-16).
local function consumer_notify(base, now, jobs, timer, ranked)
  --- @if tell
  local woken
  --- @each woken = tell(base, now, jobs, timer, ranked)
  do return woken end
  --- @end
  local names = redis.call('ZRANGE', base .. 'interested', 0, math.min(jobs, WAKE_MAX) - 1)
  if #names == 0 then return 0 end
  local floor = consumer_highest(base, ranked)
  local covered, woken = 0, 0
  for _, name in ipairs(names) do
    if covered >= jobs then break end
    local row = redis.call('HMGET', base .. 'consumer:' .. name, 'priority', 'jobs')
    if floor and (tonumber(row[1]) or 0) < floor then break end
    if consumer_wake(base, now, name) then woken = woken + 1 end
    if name == timer then consumer_wake_timer(base, now) end
    covered = covered + math.max(1, (tonumber(row[2]) or 0) - redis.call('LLEN', base .. 'held:' .. name))
  end
  return woken
end
