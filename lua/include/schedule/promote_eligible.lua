--- @include "job/eligible"
--- @include "schedule/member"

--- Members of jobs that are due now without those that must not be delivered any more, which the policies are given;
--- the others wait from now on.
local function promote_eligible(base, queue, members, taker)
  local ids, names, dropped, stored = {}, {}, {}, {}
  for i, member in ipairs(members) do
    ids[i] = string.sub(member, MEMBER_PREFIX + 1)
    names[ids[i]] = member
  end
  local values = redis.call('HMGET', base .. 'jobs', unpack(ids))
  ids, values = eligible_of(ids, values, queue.now, dropped)
  local kept = {}
  for i, id in ipairs(ids) do
    kept[i] = names[id]
    if values[i] then
      stored[#stored + 1] = id
      stored[#stored + 1] = values[i]
    end
  end
  if #dropped > 0 then
    --- @each dropped(base, queue, dropped, { taker = taker })
  end
  --- @each entered(base, queue.now, stored)
  return kept
end
