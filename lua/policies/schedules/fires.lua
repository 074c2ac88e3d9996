--- @include "tick/record"

--- Schedules that one call looks at.
local SCHEDULES_FIRED = '16'

--- What is to be done about ticks now, nil where nothing is: {owing=, due=, records=, tags=}, `records` of all these
--- names, false of those that cannot be read; `tags` of the jobs to be made.
local function schedules_fires(base, queue)
  local due = redis.call('ZRANGEBYSCORE', base .. 'ticks', '-inf', string.format('%d', queue.now), 'LIMIT', '0',
    SCHEDULES_FIRED)
  local owing = redis.call('HRANDFIELD', base .. 'owed', SCHEDULES_FIRED)
  if #due == 0 and #owing == 0 then return nil end
  local found = { owing = owing, due = due, records = {}, tags = {} }
  for _, names in ipairs({ owing, due }) do
    for _, name in ipairs(names) do
      local record = record_read(base, name) or false
      found.records[name] = record
      if record then found.tags[#found.tags + 1] = string.match(record.terms, '|[^,~]*') or '' end
    end
  end
  return found
end
