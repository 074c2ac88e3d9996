--- @include "consumer/wake"
--- @include "queue/constants"

--- Waking consumers where not each of them takes every job: set by set.

--- Wake as many as `need` ready jobs of a set ask for. First comes what those have left that this call has woken,
--- `woken` = {{from=, free=}, ...}, then others, which are entered there. `takes(from, set)`: whether who takes from
--- there takes from this set; `best(set)`: the best that waits for it, and what it takes from. `timer`: who holds it.
local function wake_takers(base, now, timer, woken, set, need, takes, best)
  for _, one in ipairs(woken) do
    if need > 0 and one.free > 0 and takes(one.from, set) then
      local part = math.min(need, one.free)
      need, one.free = need - part, one.free - part
    end
  end
  while need > 0 and #woken < WAKE_MAX do
    local name, from = best(set)
    if not name then break end
    local row = redis.call('HGET', base .. 'consumer:' .. name, 'jobs')
    local free = math.max(1, (tonumber(row) or 0) - redis.call('LLEN', base .. 'held:' .. name))
    consumer_wake(base, now, name)
    if name == timer then consumer_wake_timer(base, now) end
    woken[#woken + 1] = { from = from, free = math.max(0, free - need) }
    need = need - free
  end
end
