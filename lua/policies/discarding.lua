--- A queue that keeps no dead letters: what failed for good, or cannot be read, ends in the step in which it would become
--- one. Its record, its row of history and who waits for it say that it failed (C-07, C-08).
--- HOOKS: final, options
--- META: dead_letters
--- JOB: none
--- KEYS: none
--- STORE: list
--- ORDER: 83
--- FAST: yes
--- STRUCTURE: none
--- EXCLUDES: none

--- Whether this job, which would become a dead letter, ends instead. What has no header is none of rqueue's jobs: its
--- bytes are kept for people.
local function discarding_final(base, job)
  return not job.damaged and redis.call('HGET', base .. 'meta', 'dead_letters') == '0'
end

--- What may be configured, into `limits`.
local function discarding_options(_, limits)
  limits.dead_letters = { 0, 1 }
end
