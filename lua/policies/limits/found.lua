--- @include "schedule/member"
--- @hooks delayed

--- Where this job is, for who checks: into `found` goes each place and 1, and `turn` where it has permits.
local function limits_found(base, job, found)
  local mine = limits_of(job.tags)
  if not mine then return found end
  local member = schedule_member(job, job.id)
  local function add(place)
    found[#found + 1] = place
    found[#found + 1] = 1
  end
  if found[1] ~= 'heads' and redis.call('ZSCORE', base .. 'heads', member) then add('heads') end
  for i = 1, #mine, 2 do
    if redis.call('ZSCORE', base .. 'group:' .. mine[i], member) then add('group:' .. mine[i]) end
  end
  if redis.call('HEXISTS', base .. 'claims', job.id) == 1 then add('turn') end
  return found
end
