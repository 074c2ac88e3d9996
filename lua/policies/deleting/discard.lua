--- @include "outgoing/move"

--- A job that waited or was dead ends with its queue: it goes to another one, where people said so.
local function deleting_discard(base, now, job)
  local target = redis.call('HGET', base .. 'meta', 'jobs_to')
  if target and target ~= '' and not job.damaged then outgoing_move(base, now, job, target, 'deleted') end
end
