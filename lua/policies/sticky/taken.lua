--- @hooks marked

--- A consumer has taken these jobs, `jobs` = {id, value, ...}: buckets that were nobody's are its own.
local function sticky_taken(base, ids, jobs, consumer)
  local buckets, places = {}, {}
  for i = 1, #ids do
    local bucket = sticky_bucket_of(jobs[2 * i])
    if bucket then
      buckets[#buckets + 1] = bucket
      places[#places + 1] = 2 * i
    end
  end
  if #buckets == 0 then return end
  local owned, stored = {}, {}
  for i, owner in ipairs(redis.call('HMGET', base .. 'owners', unpack(buckets))) do
    if not owner then
      local at = places[i]
      owned[#owned + 1] = buckets[i]
      owned[#owned + 1] = consumer
      jobs[at] = sticky_mark(jobs[at])
      stored[#stored + 1] = jobs[at - 1]
      stored[#stored + 1] = jobs[at]
    end
  end
  if #owned == 0 then return end
  redis.call('HSET', base .. 'owners', unpack(owned))
  redis.call('HSET', base .. 'jobs', unpack(stored))
end
