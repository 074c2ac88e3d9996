--- @include "schedule/member"
--- @hooks delayed

--- How many stand before this job among those that wait for its limit; nil where it waits for none.
local function limits_behind(base, job)
  local mine = limits_of(job.tags)
  for i = 1, mine and #mine or 0, 2 do
    local rank = redis.call('ZRANK', base .. 'group:' .. mine[i], schedule_member(job, job.id))
    if rank then return rank end
  end
end
