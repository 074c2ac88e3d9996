--- What there is to say of the queue in numbers: into `counts` go names and numbers.
local function flows_counted(base, counts)
  counts[#counts + 1] = 'deferred'
  counts[#counts + 1] = redis.call('HLEN', base .. 'deferred')
  return counts
end
