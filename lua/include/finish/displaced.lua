--- @include "finish/end"

--- Jobs that wait end because others take their places.

--- `plan.victims` = {{id=, from=, member=}, ...}: `from` the key of the sorted set that it stands in, nil: it stands
--- nowhere yet.
local function displaced_end(base, queue, plan)
  local ids, members = {}, {}
  for i, victim in ipairs(plan.victims) do
    ids[i] = victim.id
    if victim.from then
      members[victim.from] = members[victim.from] or {}
      table.insert(members[victim.from], victim.member)
    end
  end
  for from, some in pairs(members) do redis.call('ZREM', base .. from, unpack(some)) end
  end_jobs(base, queue, ids, 'R', 'displaced')
end
