--- A job that is not delivered before its time, though it keeps the place that it takes when it is enqueued: later ones
--- overtake it while it is held, and when its time has come it is before all of them that still wait (Q-63, X-06). It
--- is scheduled until then. A queue may say that it holds none: then such a job is delivered at once.
--- HOOKS: admit, shelf, unblock, heads, stands, found, places, meets, options, ripen
--- META: hold
--- JOB: tags (h: it is held; h1: its time has come)
--- KEYS: heads
--- STORE: list
--- ORDER: 15
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: last_value, ring, selectors, sorted, refusals, flows, limits, front, shard, shares
--- @include "job/value"
--- @include "order/score"
--- @include "schedule/member"

--- `heads`: jobs whose time has come, and that are ready: members as of `scheduled`, by `score_of`. A place in the
--- middle of a list, behind all that was enqueued before it, would have to be walked to.

--- Whether a ready job stands there: one that has no group.
local function hold_mine(job)
  return job.tags and string.find(job.tags, '|h', 1, true) and not string.find(job.tags, '|g', 1, true)
end

--- `run`: of an enqueue. One whose time is past is an ordinary one.
local function hold_admit(queue, run)
  local rest, found = string.gsub(run.more, '|h', '', 1)
  if found == 0 then return end
  run.more = rest
  if run.due > 0 and redis.call('HGET', queue.base .. 'meta', 'hold') == '0' then run.due = 0 end
  if run.due > 0 then run.tags = run.tags .. '|h' end
end

--- These jobs ({id=, level=, position=, due=, tags=, ...}) are to be ready: where the time of one has come, it stands
--- by its position from now on.
local function hold_shelf(base, _, jobs)
  local rest, stored, open = {}, {}, {}
  for _, job in ipairs(jobs) do
    if job.tags and string.find(job.tags .. '|', '|h|', 1, true) then
      job.due, job.tags = 0, string.gsub(job.tags, '|h', '|h1', 1)
      stored[#stored + 1] = job.id
      stored[#stored + 1] = value_header(job) .. job.envelope
    end
    if hold_mine(job) then
      local member = schedule_member(job, job.id)
      open[#open + 1] = job.due > 0 and string.format('%d', score_of(job.level, job.due)) or score_text(member)
      open[#open + 1] = member
    else
      rest[#rest + 1] = job
    end
  end
  if #stored > 0 then redis.call('HSET', base .. 'jobs', unpack(stored)) end
  if #open > 0 then redis.call('ZADD', base .. 'heads', unpack(open)) end
  return rest
end

--- A job that waits leaves: out of its place. Answers `ready`; nil where it does not stand here.
local function hold_unblock(base, _, job)
  if hold_mine(job) and redis.call('ZREM', base .. 'heads', schedule_member(job, job.id)) == 1 then return 'ready' end
end

--- Where ready jobs stand beside the lists.
local function hold_heads(base)
  return { base .. 'heads', lists = true }
end

--- The key of the sorted set that a ready job stands in.
local function hold_stands(base, job)
  return redis.call('ZSCORE', base .. 'heads', schedule_member(job, job.id)) and base .. 'heads'
end

--- Where this job is, for who checks: into `found` goes each place and 1.
local function hold_found(base, job, found)
  if hold_mine(job) and redis.call('ZSCORE', base .. 'heads', schedule_member(job, job.id)) then
    found[#found + 1] = 'heads'
    found[#found + 1] = 1
  end
  return found
end

local function hold_places(_, found)
  found[#found + 1] = { 'heads', 'zset' }
  return found
end

--- What a step about jobs with these values, or tags, may meet: into `found`.
local function hold_meets(values, found)
  for _, value in ipairs(values) do
    if value and string.find(value, '^[^;]*|h') then return hold_places(nil, found) end
  end
  return found
end

--- What may be configured, into `limits`.
local function hold_options(_, limits)
  limits.hold = { 0, 1 }
end
