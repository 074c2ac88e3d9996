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
--- @include "flow/heard"
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

--- What its hooks share. A script has 200 local variables at the most.
local FLOWS = {}

--- The most parents that a job may have by name, jobs that may wait for one by name, results that are passed on, and
--- bytes of them; jobs that one call ends because their parents failed; jobs that one command is given. The most parents
--- that a job may have, and for how many ms the producer of a stream may say nothing.
FLOWS.NAMED, FLOWS.WAITING, FLOWS.RESULTS, FLOWS.BYTES, FLOWS.STOPS, FLOWS.PIECE = 100, 1000, 1000, 1048576, 100, 500
FLOWS.PARENTS, FLOWS.LOST_MS = 1000000, 600000

--- {policy=, mode=, total=, ids=, away=, streamed=, open=} by the tags, or the value, of a job; nil where it waits for
--- none. policy: s = it ends where a parent fails, c = a failure counts too, w = it waits until a dead letter lives again
--- and is done, f = it runs only where one fails. mode: n = no results, o = that of the one parent, l = all as a list.
--- ids: names, nil = those derived from its own. away: its workflow is one of several queues; parents say themselves who
--- waits for them. streamed: its parents come as a stream (s in place of the mode), which is not sealed where it is open.
function FLOWS.tag(text)
  local policy, mode, total, away, names = string.match(text or '', '^[^;]-|w([scwf])([nols])(%d+)(@?[^:|;]*):?([^|;]*)')
  if not policy then return nil end
  local its = { policy = policy, mode = mode, total = tonumber(total), away = away ~= '' }
  if mode == 's' then its.mode, its.streamed, its.open = 'n', true, its.total == 0 end
  if names ~= '' then
    its.ids = {}
    for name in string.gmatch(names, '[^/]+') do its.ids[#its.ids + 1] = FLOWS.name(name) end
  end
  return its
end

--- A name that stands escaped in terms and headers.
function FLOWS.name(text)
  return (string.gsub(text, '%%(%x%x)', function(digits) return string.char(tonumber(digits, 16)) end))
end

--- Whether a job with these tags, or this value, counts for the one that its id is derived from; that one and its place.
function FLOWS.derived(id, text)
  if not string.find(text or '', '^[^;]-|p') then return nil end
  local parent, place = member_read(id)
  return parent, place
end

--- What a parent left, as JSON. `one` = {id=, ok=, result=, state=, cause=}. Many jobs may wait for it.
function FLOWS.left(one)
  if not one.left and one.ok then
    one.left = '[1,' .. ((one.result == '' or one.result == '-') and 'null' or one.result) .. ']'
  elseif not one.left then
    local cause = one.cause or {}
    one.left = '[0,' .. cjson.encode({ id = one.id, state = one.state, type = cause.type, message = cause.message }) .. ']'
  end
  return one.left
end

--- Note that parents have ended: runs of places, and what each left, where that is wanted. Returns whether the job,
--- which has `total` parents, has heard of all; never where more may come. Where the key is of another type the job stays
--- where it is; the doctor says so.
function FLOWS.gather(base, job, its, total, runs, left)
  local key = FLOWS.noted(base, job, its)
  if its.mode ~= 'n' then
    local words, count = {}, 0
    for i = 1, #runs, 2 do
      for place = runs[i], runs[i + 1] do
        count = count + 1
        words[2 * count - 1], words[2 * count] = string.format('%d', place), left[count]
      end
    end
    if words[1] then redis.pcall('HSET', key, unpack(words)) end
    return redis.pcall('HLEN', key) == total
  end
  heard_note(key, runs)
  return not its.open and heard_all(key, total)
end

--- The key that has of which parents a job has heard.
function FLOWS.noted(base, job, its)
  return base .. (its.mode == 'n' and 'heard:' or 'gathered:') .. job
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
