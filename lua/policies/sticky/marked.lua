--- @hooks audience

--- A value as the first of its bucket has it: as long as before, so that bytes that are counted stay right.
local function sticky_mark(value)
  local head, rest = string.match(value, '^([^;]-)|b(.*)$')
  return head and head .. '|B' .. rest or value
end

--- The value with which a job is delivered directly.
local function sticky_marked(base, job, value)
  local bucket = sticky_bucket(job)
  if not bucket or redis.call('HEXISTS', base .. 'owners', bucket) == 1 then return value end
  return sticky_mark(value)
end
