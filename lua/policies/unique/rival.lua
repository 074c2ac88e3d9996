--- @hooks kept

--- A dead letter is to live again. Answers the id of the job that has its key; nil: nobody has, and it has it now.
local function unique_rival(base, now, job)
  local its = unique_tag(job.tags)
  if not its then return nil end
  local owner = redis.call('HGET', base .. 'unique', its.key)
  if owner and owner ~= job.id then
    local value = redis.call('HGET', base .. 'jobs', owner)
    local period = redis.call('ZSCORE', base .. 'periods', its.key)
    local other = unique_tag(value)
    if other and other.key == its.key or not value and period and tonumber(period) > now then return owner end
  end
  redis.call('ZREM', base .. 'periods', its.key)
  redis.call('HSET', base .. 'unique', its.key, job.id)
end
