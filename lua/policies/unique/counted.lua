--- What there is to say of the queue in numbers: into `counts` go names and numbers.
local function unique_counted(base, counts)
  counts[#counts + 1] = 'unique'
  counts[#counts + 1] = redis.call('HLEN', base .. 'unique')
  return counts
end
