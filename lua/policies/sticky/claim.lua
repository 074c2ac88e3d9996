--- @hooks audience

--- A consumer was found to hold this job, or is delivered it directly: its bucket is that one's, if it was nobody's.
local function sticky_claim(base, job, held, taker)
  local bucket, consumer = sticky_bucket(job), held or taker
  if bucket and consumer then redis.call('HSETNX', base .. 'owners', bucket, consumer) end
end
