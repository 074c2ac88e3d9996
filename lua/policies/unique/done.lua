--- @hooks kept

--- These jobs are done, and their values are about to go: where a period is not over, they keep their keys.
local function unique_done(base, queue, gone)
  if redis.call('EXISTS', base .. 'unique') == 0 then return end
  local jobs = {}
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(gone))) do
    local its = unique_tag(value)
    if its then
      its.id = gone[i]
      jobs[#jobs + 1] = its
    end
  end
  unique_free(base, jobs, queue.now)
end
