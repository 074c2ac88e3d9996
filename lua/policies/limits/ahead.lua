--- @include "schedule/member"
--- @hooks delayed

--- The job that goes before this one, which waits for a permit; nil where it waits for none.
local function limits_ahead(base, job)
  local mine = limits_of(job.tags)
  for i = 1, mine and #mine or 0, 2 do
    local key = base .. 'group:' .. mine[i]
    if redis.call('ZSCORE', key, schedule_member(job, job.id)) then
      return string.sub(redis.call('ZRANGE', key, '0', '0')[1], MEMBER_PREFIX + 1)
    end
  end
end
