--- What there is to say of the queue in numbers: into `counts` go names and numbers.
local function schedules_counted(base, counts)
  local first = redis.call('ZRANGE', base .. 'ticks', '0', '0', 'WITHSCORES')
  if first[2] then
    counts[#counts + 1] = 'next_tick'
    counts[#counts + 1] = tonumber(first[2])
  end
  counts[#counts + 1] = 'schedules'
  counts[#counts + 1] = redis.call('HLEN', base .. 'schedules')
  return counts
end
