--- Whether the queue has any job, dead letters among them. Elements of ended jobs that still stand in a list are none.
local function any_job(base)
  return redis.call('HLEN', base .. 'jobs') > (tonumber(redis.call('HGET', base .. 'meta', 'marked')) or 0)
end
