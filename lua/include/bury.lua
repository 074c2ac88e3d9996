--- @include "records"
--- @include "history_lines"

--- Dead letters: the job's value stays in `jobs`, its cause in `causes`, the attempts' errors in `errors`.

--- Errors kept per job: the first ones fall out where this many bytes are passed.
local ERRORS_BYTES = 65536

local function bury_note_error(base, id, error_)
  if error_ == '' then return end
  local known = redis.call('HGET', base .. 'errors', id)
  if known then
    error_ = known .. '\n' .. error_
    while #error_ > ERRORS_BYTES do
      local next_ = string.find(error_, '\n', 1, true)
      if not next_ then break end
      error_ = string.sub(error_, next_ + 1)
    end
  end
  redis.call('HSET', base .. 'errors', id, error_)
end

--- Why a job without a header is dead.
local function bury_damaged(now)
  return cjson.encode({ kind = 'undecodable', type = 'Undecodable', at = now,
    message = 'its stored value has no header: something that is not rqueue wrote it' })
end

--- Bury `job` (a parsed value with its id): returns its record.
local function bury_job(base, now, job, cause)
  redis.call('HSET', base .. 'jobs', job.id, value_header(job) .. job.envelope)
  redis.call('ZADD', base .. 'dead', now, job.id)
  redis.call('HSET', base .. 'causes', job.id, cause)
  bury_note_error(base, job.id, cause)
  return string.format('F%d:', now) .. cause
end
