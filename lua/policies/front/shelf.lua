--- @include "job/value"
--- @include "order/due"
--- @include "order/front"

--- The earliest due times, by level, of those that become ready in the same step and are not to come to the front: they
--- stand nowhere yet.
local function front_before(jobs)
  local earliest = {}
  for _, job in ipairs(jobs) do
    if (job.due or 0) > 0 then earliest[job.level] = math.min(earliest[job.level] or job.due, job.due) end
  end
  return earliest
end

--- These jobs ({id=, level=, position=, due=, tags=, ...}) are to be ready: one after the other those that are to come to
--- the front get there, so that the last one is the first. The others are returned.
local function front_shelf(base, queue, jobs)
  local mine, rest, ids = {}, {}, {}
  for _, job in ipairs(jobs) do
    if job.tags and string.find(job.tags, '|f', 1, true) then
      mine[#mine + 1], ids[#ids + 1] = job, job.id
    else
      rest[#rest + 1] = job
    end
  end
  if #mine == 0 then return jobs end
  local values, before = redis.call('HMGET', base .. 'jobs', unpack(ids)), front_before(rest)
  local first, lists, stored = {}, {}, {}
  for i, one in ipairs(mine) do
    local job, level = value_parse(values[i]), one.level
    job.level, job.tags = level, string.gsub(job.tags, '|f%d', '', 1)
    if first[level] then
      job.due = math.max(1, first[level] - 1)
    else
      job.due = order_front(base, queue.now, level)
      if before[level] and before[level] <= job.due then job.due = math.max(1, before[level] - 1) end
      lists[level] = {}
    end
    first[level] = job.due
    table.insert(lists[level], one.id)
    stored[#stored + 1] = one.id
    stored[#stored + 1] = value_header(job) .. job.envelope
  end
  redis.call('HSET', base .. 'jobs', unpack(stored))
  for level, some in pairs(lists) do due_list_put(base, level, some) end
  return rest
end
