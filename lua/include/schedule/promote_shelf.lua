--- @include "job/value"
--- @include "order/levels"
--- @include "schedule/member"
--- @hooks shelf

--- Due jobs that policies have places for go there. Returns the members of the others.
local function promote_shelf(base, queue, members)
  if #members == 0 then return members end
  local ids, jobs, by_job = {}, {}, {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, MEMBER_PREFIX + 1) end
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
    -- what is no job goes where the others go: who pulls finds none of that name
    local job = value and value_parse(value) or { tags = '', position = 0 }
    job.id = ids[i]
    jobs[i], by_job[job] = job, members[i]
  end
  queue.kept_back = 0
  --- @each jobs = shelf(base, queue, jobs)
  local rest, used = {}, {}
  for job in pairs(by_job) do
    if job.level then used[job.level] = true end
  end
  queue.levels = levels_use(base .. 'meta', queue.levels, used)
  for i, job in ipairs(jobs) do rest[i] = by_job[job] end
  return rest
end
