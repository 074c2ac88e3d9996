--- @hooks awaits
--- @include "flow/waits"

--- Why a job (its id, its tags) cannot go to another queue: others wait for it here, or it has what its parents left.
local function flows_tied(base, job)
  if string.find(job.tags or '', '|i', 1, true) then return 'results' end
  local parent, place = FLOWS.derived(job.id, (job.tags or '') .. ';')
  if redis.call('HEXISTS', base .. 'edges', job.id) == 1 or parent
    and redis.call('HEXISTS', base .. 'deferred', parent) == 1
    and redis.call('HEXISTS', base .. 'gathered:' .. parent, place) == 0
    and redis.call('GETBIT', base .. 'heard:' .. parent, place) == 0 then
    return 'waited'
  end
  return nil
end
