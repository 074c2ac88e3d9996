--- @include "job/value"
--- @include "schedule/member"
--- @hooks strand

--- A purge has taken these jobs (ids) off their places, and nobody stands behind a head.
local function shares_cleared(base, ids)
  if #ids == 0 then return end
  local gone = {}
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
    local job = value and string.byte(value) ~= 33 and value_parse(value)
    if job and shares_takes(job) then
      job.id = ids[i]
      local strand, member = shares_strand_of(job.level, shares_name(job.tags)), schedule_member(job, job.id)
      local said = redis.call('HGET', base .. 'strands', strand)
      if said and string.sub(said, SHARES_DIGITS + 1) == member then gone[#gone + 1] = strand end
    end
  end
  if #gone > 0 then redis.call('HDEL', base .. 'strands', unpack(gone)) end
  if redis.call('EXISTS', base .. 'heads') == 0 then shares_rest(base) end
end
