--- @include "consumer/ahead"
--- @include "consumer/wake"
--- @include "order/lists_count"
--- @include "queue/constants"
--- @hooks audience

--- Notify consumers of work that they can take. Owners of what became ready for them in this call, each of them: nobody
--- else takes it. Where the call is about nobody's work and does not know what became ready, all owners that have some.
--- Then others, best first and no more (Q-37, H-16), of what anybody may take: what became so in this call, at least
--- what of `jobs` is no owner's, as far as it still is. `how` = {except=, idle=, left=}: not this consumer; only where
--- no consumer is notified; `jobs` are left beside what became ready, so that none of them is an owner's.
local function sticky_tell(base, now, jobs, timer, ranked, how)
  local own, common, known = STICKY.own, STICKY.common, next(STICKY.own) ~= nil or STICKY.common > 0
  STICKY.own, STICKY.common = {}, 0
  if redis.call('EXISTS', base .. 'interested') == 0 then return 0 end
  local except, left, woken, names, free = how and how.except, how and how.left, 0, {}, 0
  local function wake(name)
    local row = redis.call('HGET', base .. 'consumer:' .. name, 'jobs')
    consumer_wake(base, now, name)
    if name == timer then consumer_wake_timer(base, now) end
    woken = woken + 1
    return math.max(1, (tonumber(row) or 0) - redis.call('LLEN', base .. 'held:' .. name))
  end
  if known then
    for name in pairs(own) do names[#names + 1] = name end
    table.sort(names)
  elseif not STICKY.mine then
    names = sticky_consumers(base)
  end
  for _, name in ipairs(names) do
    local its = own[name] or 0
    if not left then jobs = jobs - its end
    if name ~= except and redis.call('ZSCORE', base .. 'interested', name)
      and redis.call('EXISTS', sticky_key(base, name)) == 1 then
      free = free + math.max(0, wake(name) - math.max(1, its))
    end
  end
  local need = math.min(math.max(jobs, common), lists_count(base) + redis.call('ZCARD', base .. 'heads')) - free
  if need <= 0 or how and how.idle and redis.call('EXISTS', base .. 'notified') == 1 then return woken end
  local floor
  if ranked then
    for _, one in ipairs(ahead_notified(base, 'priority', except)) do floor = math.max(floor or one[1], one[1]) end
  end
  local waiting = redis.call('ZRANGE', base .. 'interested', '0', WAKE_LAST, 'WITHSCORES')
  for i = 1, #waiting, 2 do
    if need <= 0 or floor and ahead_priority(waiting[i + 1]) < floor then break end
    if waiting[i] ~= except then need = need - wake(waiting[i]) end
  end
  return woken
end
