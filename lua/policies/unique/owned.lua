--- @hooks kept

--- These jobs ({id=, key=, lasts=, answer=, due=}) have their keys from now on. `taken`: a consumer has the one job already.
local function unique_owned(base, now, jobs, taken)
  local entries, periods = {}, {}
  for _, job in ipairs(jobs) do
    if not (taken and job.lasts == 's') then
      entries[#entries + 1] = job.key
      entries[#entries + 1] = job.id
    end
    if tonumber(job.lasts) then
      local from = job.answer == 't' and math.max(now, job.due) or now
      periods[#periods + 1] = string.format('%d', from + tonumber(job.lasts))
      periods[#periods + 1] = job.key
    end
  end
  if #entries > 0 then redis.call('HSET', base .. 'unique', unpack(entries)) end
  if #periods > 0 then redis.call('ZADD', base .. 'periods', unpack(periods)) end
end
