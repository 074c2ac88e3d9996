--- @include "schedule/member"
--- @include "consumer/wake"

--- How many were added in this call, by due time.
local ADDED = {}

--- Put jobs into the schedule. `entries`: {due=, level=, position=, id=} each.
local function schedule_add(base, entries)
  local members = {}
  for _, entry in ipairs(entries) do
    ADDED[entry.due] = (ADDED[entry.due] or 0) + 1
    members[#members + 1] = entry.due
    members[#members + 1] = schedule_member(entry, entry.id)
  end
  redis.call('ZADD', base .. 'scheduled', unpack(members))
end

--- See that the waiting consumer that watches the schedule knows of an earlier due time.
--- `soonest`: the earliest due time among what was just added.
local function schedule_add_watch(base, now, soonest, timer)
  -- where others are due by then, it is known already
  local due = redis.call('ZCOUNT', base .. 'scheduled', '-inf', string.format('%d', soonest))
  if due > ADDED[soonest] then return end
  if timer and redis.call('ZSCORE', base .. 'interested', timer) then
    -- it watches for the later time: until it has pulled, nobody watches
    redis.call('HDEL', base .. 'meta', 'timer')
    consumer_wake(base, now, timer)
  elseif redis.call('EXISTS', base .. 'notified') == 0 then
    -- else a notified consumer is still to pull, and will learn of it
    consumer_wake_timer(base, now)
  end
end
