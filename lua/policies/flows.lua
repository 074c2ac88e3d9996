--- Workflows: a job that waits for others, its parents, is deferred until they have ended; then it becomes ready, with
--- their results where it wants them. The step that ends a parent tells the jobs that wait for it, whatever ends it:
--- nothing is counted apart from that, and a parent that ends twice is counted once.
--- HOOKS: admit, parents, defers, seal, unblock, awaits, tied, retell, heard, pass, done, meets, overdue, upkeep, counted,
---   deferred, places
--- META: none
--- JOB: tags (w: what it waits for, p: the job that its id is derived from waits for it, t: jobs that wait for it say so
---   in `edges` from its beginning, i: what its parents left)
--- KEYS: deferred, edges, gathered:<job>, heard:<job>, stops, unsealed
--- STORE: list
--- ORDER: 76
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: hold, last_value, ring, selectors, refusals, sorted, lifetime, unique, limits, shard, shares
--- @include "flow/waits"
--- @include "flow/member"

--- `deferred`: job that is deferred -> how many parents it has. `gathered:<job>`: place of a parent that has ended among
--- these -> what it left, JSON, [1, result] or [0, failure]; where nobody wants that, `heard:<job>` has one bit for each
--- place instead. When all places are there, the job becomes ready. `edges`: parent -> "<place> <job>" of each job that
--- waits for it by name, a line each; a parent whose id is "<job>.<place>" says that itself, by its tag.
--- "<place><n|r>@<queue> <job>": that job is in another queue, wants the result (r) or not, and hears of the end by way of
--- the outbox. `stops`: deferred jobs that are to end -> why, JSON, where one step would end too many.
--- A job whose parents come as a stream is open until that is sealed: more of them may come, so it does not become ready
--- though all that have come have ended. `deferred` has how many have come, the job's tag their number once it is sealed,
--- 0 until then. `unsealed`: such jobs by the time at which their producer is taken for lost.

--- Whether a job with these tags, or this value, counts for the one that its id is derived from; that one and its place.
function FLOWS.derived(id, text)
  if not string.find(text or '', '^[^;]-|p') then return nil end
  local parent, place = member_read(id)
  return parent, place
end

--- Of which of these places a job has heard: false where it has not.
function FLOWS.known(base, job, its, places)
  local key = FLOWS.noted(base, job, its)
  return its.mode == 'n' and heard_which(key, places) or redis.call('HMGET', key, unpack(places))
end

--- How many parents a deferred job still waits for; nil where it is not deferred.
local function flows_awaits(base, job)
  local its = FLOWS.tag(job.tags)
  local total = its and redis.call('HGET', base .. 'deferred', job.id)
  if not total then return nil end
  return tonumber(total) - redis.call(its.mode == 'n' and 'BITCOUNT' or 'HLEN', FLOWS.noted(base, job.id, its))
end

--- A deferred job leaves. Answers `deferred`; nil where it is not.
local function flows_unblock(base, _, job)
  if not string.find(job.tags or '', '|w', 1, true) or redis.call('HDEL', base .. 'deferred', job.id) == 0 then return nil end
  redis.call('UNLINK', base .. 'gathered:' .. job.id, base .. 'heard:' .. job.id)
  redis.call('HDEL', base .. 'stops', job.id)
  redis.call('ZREM', base .. 'unsealed', job.id)
  return 'deferred'
end
