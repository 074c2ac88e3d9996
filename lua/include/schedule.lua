--- @include "seat"
--- @include "consumers"

--- Put jobs into the schedule. `entries`: {due=, level=, position=, id=} each.
local function schedule_add(base, entries)
  local members = {}
  for _, entry in ipairs(entries) do
    members[#members + 1] = entry.due
    members[#members + 1] = seat_of(entry, entry.id)
  end
  redis.call('ZADD', base .. 'scheduled', unpack(members))
end

--- See that the waiting consumer that watches the schedule knows of an earlier due time.
--- `soonest`: the earliest due time among what was just added.
local function schedule_watch(base, now, soonest, timer)
  local first = redis.call('ZRANGE', base .. 'scheduled', 0, 0, 'WITHSCORES')
  if not first[2] or tonumber(first[2]) < soonest then return end
  if timer and redis.call('ZSCORE', base .. 'interested', timer) then
    -- it watches for the later time: until it has pulled, nobody watches
    redis.call('HDEL', base .. 'meta', 'timer')
    consumer_wake(base, now, timer)
  elseif redis.call('EXISTS', base .. 'notified') == 0 then
    -- else somebody who was told is still to come, and will learn of it
    consumer_pass_timer(base, now)
  end
end
