--- @include "queue/sound_type"

--- Whether a settle that is not a plain one, of successes in the order of taking, can do all that it has to, before it
--- begins. A plain one is undone where it fails.

--- Of what all jobs that are done meet.
local function sound_records(base)
  return sound_type(base, 'jobs', 'hash') or sound_type(base, 'ended', 'hash') or sound_type(base, 'history', 'stream')
end

--- Of what is there where jobs have failed, or clients wait for results: notes in `queue` which.
local function sound_rest(base, queue, said)
  queue.failed = said.acked + said.done > 0 and redis.call('EXISTS', base .. 'errors') == 1
  queue.awaited = redis.call('EXISTS', base .. 'awaited') == 1
  return queue.failed and sound_type(base, 'errors', 'hash') or queue.awaited and sound_type(base, 'awaited', 'hash')
end

--- An error reply where one of the keys is of another type, else nil. `alone`: nothing is pulled in the same step.
local function settle_sound(base, queue, said, alone)
  said.sound = said.fates or queue.turns
  --- @if done
  if said.total > 0 then
    --- @include "queue/sound_jobs"
    -- what a job that is done meets depends on its value where that says a group, a limit or a key
    local values = {}
    --- @if claim
    values = redis.call('HMGET', base .. 'jobs', unpack(said.ids))
    --- @end
    --- @if owned
    values = redis.call('HMGET', base .. 'jobs', unpack(said.ids))
    --- @end
    -- records and rows are written before the policies hear of that, and undone where they cannot be: values are not
    local met = sound_jobs(base, values, queue) or sound_type(base, 'jobs', 'hash')
    if met then return met end
  end
  if alone and not said.fates then
    --- @include "queue/sound"
    -- other consumers may be notified of jobs whose turn it is then
    local met = sound_fault(base, queue.levels)
    if met then return met end
  end
  --- @end
  if said.fates then
    local fault, records = said.unfinished_sound(base, queue, said, alone)
    if fault or not records then return fault end
  end
  local fault = not queue.quiet and sound_rest(base, queue, said)
  return fault or said.sound and not said.fates and sound_records(base)
end
