--- The errors of a job's attempts: one JSON object a line in the hash `errors`.

--- Errors kept per job: the first ones fall out where this many bytes are passed.
local ERRORS_BYTES = 65536

local function errors_note(base, id, error_)
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
