--- The queue is being deleted: it takes no jobs and no consumers any more. Its consumers are taken off and its jobs are
--- ended, or go to another queue, in steps of their own; then nothing is left of it.
--- HOOKS: closed
--- META: jobs_to
--- JOB: none
--- KEYS: none
--- STORE: list
--- ORDER: 90
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: none

--- An error reply: nothing is taken.
local function deleting_closed()
  return redis.error_reply('DELETING the queue is being deleted')
end
