--- @include "schedule/member"
--- @hooks audience

--- Where this job is, for who checks: into `found` goes each place and 1.
local function sticky_found(base, job, found)
  local bucket = sticky_bucket(job)
  if not bucket then return found end
  local member = schedule_member(job, job.id)
  for _, owner in ipairs(sticky_consumers(base)) do
    if redis.call('ZSCORE', sticky_key(base, owner), member) then
      found[#found + 1] = 'own:' .. owner
      found[#found + 1] = 1
    end
  end
  return found
end
