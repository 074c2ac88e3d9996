--- @include "schedule/member"
--- @hooks strand

--- Where this job is, for who checks: into `found` goes each place and 1.
local function shares_found(base, job, found)
  if not shares_takes(job) then return found end
  local member, strand = schedule_member(job, job.id), shares_strand_of(job.level, shares_name(job.tags))
  for _, place in ipairs({ 'heads', 'group:' .. strand }) do
    if redis.call('ZSCORE', base .. place, member) then
      found[#found + 1] = place
      found[#found + 1] = 1
    end
  end
  return found
end
