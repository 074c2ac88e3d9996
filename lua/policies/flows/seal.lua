--- @hooks awaits
--- @include "flow/ends"
--- @include "result/read"

--- The stream of a job's parents has ended, with so many: that many have to have come. Returns true, or an error reply; a
--- stream that was sealed before, with the same number, is sealed.
local function flows_seal(base, queue, id, total)
  local value = redis.call('HGET', base .. 'jobs', id)
  local its = value and string.byte(value) ~= 33 and FLOWS.tag(value)
  if its and not its.streamed then return redis.error_reply('BADARGS seal: its parents are no stream') end
  local joined = tonumber(redis.call('HGET', base .. 'deferred', id) or nil)
  if not its then
    -- only what was sealed has run
    local letter = string.match(result_read(base, id) or '', '^(%a)')
    if letter == 'D' or letter == 'F' then return true end
    return redis.error_reply('NOPARENT over ' .. id)
  end
  -- what lives and does not wait was sealed, if with none
  local open = its.open and joined
  local count = open or its.total
  if count ~= total then return redis.error_reply('SEALED ' .. string.format('%d %d ', count, total) .. id) end
  if not open then return true end
  -- first write: frees (README)
  redis.call('ZREM', base .. 'unsealed', id)
  local job = value_parse(value)
  -- as long as it was: the bytes of a queue are counted
  job.tags = string.gsub(job.tags, '|w(%a)s%d+', function(policy) return string.format('|w%ss%07d', policy, total) end, 1)
  its.total, its.open = total, false
  if FLOWS.gather(base, id, its, total, {}) then
    FLOWS.release(base, queue, { { id = id, job = job, its = its } })
  else
    redis.call('HSET', base .. 'jobs', id, value_header(job) .. job.envelope)
  end
  return true
end
