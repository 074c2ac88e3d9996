--- @include "consumer/ahead"
--- @include "queue/constants"
--- @hooks audience

--- The consumers that wait and may be delivered a job of this run, best first: the owner of its bucket, else all, but
--- where one that was notified goes before them.
local function sticky_able(base, run)
  local bucket = sticky_bucket(run)
  local owner = bucket and redis.call('HGET', base .. 'owners', bucket)
  if owner then return redis.call('ZSCORE', base .. 'interested', owner) and { owner } or {} end
  local waiting, names = redis.call('ZRANGE', base .. 'interested', '0', WAKE_LAST, 'WITHSCORES'), {}
  local floor
  if redis.call('HGET', base .. 'meta', 'ranked') == '1' then
    for _, one in ipairs(ahead_notified(base, 'priority')) do floor = math.max(floor or one[1], one[1]) end
  end
  for i = 1, #waiting, 2 do
    if floor and ahead_priority(waiting[i + 1]) < floor then break end
    names[#names + 1] = waiting[i]
  end
  return names
end
