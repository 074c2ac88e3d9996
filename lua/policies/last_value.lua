--- Of the jobs of one key only the latest waits: one that is enqueued, or becomes due, displaces the older one, which
--- ends. An older one that a consumer holds ends when it comes back, also when the newer one has ended meanwhile. Jobs
--- without a key are never displaced (Q-15, X-17).
--- HOOKS: admit, displace, claim, shelf, unblock, returned, pass, done, heads, stands, places, meets, found, repair, ripen
--- META: none
--- JOB: tags (k: the key, escaped)
--- KEYS: latest, heads
--- STORE: list
--- ORDER: 20
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: unique, ttl, groups, selectors, exclusive, ring, lifetime, hold, refusals, flows, limits, front, shard,
---   shares
--- @include "job/value"
--- @include "order/standing"
--- @include "schedule/member"

--- `latest`: key -> id of the last of its jobs that was ready, while that lives. `heads`: those of them that are ready:
--- members as of `scheduled`, by `score_of`: there a job leaves the middle without a mark.

--- The key of a job by its tags; nil where it has none.
local function last_value_key(job)
  return job.tags and string.match(job.tags, '|k([^|]*)')
end

--- `run`: of an enqueue.
local function last_value_admit(_, run)
  local key = string.match(run.more, '|k([^|~]*)')
  if not key then return end
  if key == '' or #key > 384 or string.find(key, '[^%w%%_-]') then
    return redis.error_reply('BADARGS enqueue: a key that is empty, too long or not escaped')
  end
  run.tags, run.placed = run.tags .. '|k' .. key, true
  run.more = string.gsub(run.more, '|k[^|~]*', '', 1)
end

--- The member of a ready job that has a key.
local function last_value_standing(job)
  return (select(2, standing_of(job)))
end

--- Older jobs that wait are victims: {id=, from=, member=}, `from` the key of the sorted set that they stand in.
local function last_value_older(base, older, victims)
  local waiting, members = {}, { heads = {}, scheduled = {} }
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(older))) do
    if value and string.byte(value) ~= 33 then
      local job = value_parse(value)
      job.id = older[i]
      waiting[#waiting + 1] = job.id
      members.heads[#waiting] = last_value_standing(job)
      members.scheduled[#waiting] = schedule_member(job, job.id)
    end
  end
  for _, from in ipairs(#waiting > 0 and { 'heads', 'scheduled' } or {}) do
    local scores = redis.call('ZMSCORE', base .. from, unpack(members[from]))
    for i, member in ipairs(members[from]) do
      if scores[i] then victims[#victims + 1] = { id = waiting[i], from = from, member = member } end
    end
  end
end

--- Whether `job` is a tick that was missed, and made up for after the job `before` of its key had come.
local function last_value_late(base, job, before)
  local value = string.find(job.tags, '|t%d') and redis.call('HGET', base .. 'jobs', before)
  if not value or string.byte(value) == 33 then return false end
  local its = value_parse(value)
  local fresh = its.deliveries + its.attempts == 0
  return (fresh and its.due > 0 and its.due or its.enqueued) > job.due
end

--- What these jobs ({id=, tags=}) displace that become ready in this order, each other included: into `plan.victims`,
--- those of their own also into `plan.gone`. `plan.latest`: {key, id, ...} as it is then.
local function last_value_displace(base, jobs, plan)
  local mine, keys = {}, {}
  for _, job in ipairs(jobs) do
    local key = last_value_key(job)
    if key then mine[#mine + 1], keys[#keys + 1] = job, key end
  end
  if #mine == 0 then return end
  local known, latest, over, older, arriving = redis.call('HMGET', base .. 'latest', unpack(keys)), {}, {}, {}, {}
  for i, job in ipairs(mine) do
    local key = keys[i]
    local before = latest[key]
    if before == nil then before = known[i] end
    -- one that comes back is the latest, until another one of this call is
    if before and before ~= job.id and not arriving[before] and last_value_late(base, job, before) then
      latest[key], plan.gone[job.id] = before, true
      plan.victims[#plan.victims + 1] = { id = job.id }
    elseif not over[job.id] then
      if before and before ~= job.id then
        over[before] = true
        if arriving[before] then
          plan.gone[before] = true
          plan.victims[#plan.victims + 1] = { id = before }
        else
          older[#older + 1] = before
        end
      end
      latest[key], arriving[job.id] = job.id, true
    else
      -- it becomes due with the one that displaces it, and after it: it is in no place any more
      plan.gone[job.id] = true
      plan.victims[#plan.victims + 1] = { id = job.id }
    end
  end
  if #older > 0 then last_value_older(base, older, plan.victims) end
  plan.latest = {}
  for key, id in pairs(latest) do
    plan.latest[#plan.latest + 1] = key
    plan.latest[#plan.latest + 1] = id
  end
end

--- It was delivered directly. `held`: it is found to be held, and another one may be the latest.
local function last_value_claim(base, job, held)
  local key = last_value_key(job)
  if key then redis.call(held and 'HSETNX' or 'HSET', base .. 'latest', key, job.id) end
end

--- A job that waits leaves: out of its place. Answers `ready`; nil where it does not stand here.
local function last_value_unblock(base, _, job)
  if last_value_key(job) and redis.call('ZREM', base .. 'heads', last_value_standing(job)) == 1 then return 'ready' end
end

--- The outcome of a job that comes back from a consumer where a newer one has come, else nil. `lost`: it was found in
--- no place: where its key has no latest, it is that.
local function last_value_returned(base, job, lost)
  local key = last_value_key(job)
  if not key then return nil end
  if lost then redis.call('HSETNX', base .. 'latest', key, job.id) end
  return redis.call('HGET', base .. 'latest', key) ~= job.id and 'displaced' or nil
end

--- Of these keys some may have had their last jobs: where the latest is the one of `ids`, nothing is kept of the key.
local function last_value_forget(base, ids, keys)
  local over = {}
  for i, id in ipairs(redis.call('HMGET', base .. 'latest', unpack(keys))) do
    if id == ids[i] then over[#over + 1] = keys[i] end
  end
  if #over > 0 then redis.call('HDEL', base .. 'latest', unpack(over)) end
end

--- These jobs ({id=, tags=, again=}) are gone for good, unless they are to come `again`.
local function last_value_pass(base, _, jobs)
  local ids, keys = {}, {}
  for _, job in ipairs(jobs) do
    local key = not job.again and last_value_key(job)
    if key then ids[#ids + 1], keys[#keys + 1] = job.id, key end
  end
  if #ids > 0 then last_value_forget(base, ids, keys) end
end

--- The tags of a value, or of tags.
local function last_value_tags(value)
  return { tags = value and string.match(value, '^[%d,-]*([^;]*)') }
end

--- The same of jobs that are done, whose values are about to go.
local function last_value_done(base, _, gone)
  if redis.call('EXISTS', base .. 'latest') == 0 then return end
  local ids, keys = {}, {}
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(gone))) do
    local key = last_value_key(last_value_tags(value))
    if key then ids[#ids + 1], keys[#keys + 1] = gone[i], key end
  end
  if #ids > 0 then last_value_forget(base, ids, keys) end
end

--- Where ready jobs stand beside the lists.
local function last_value_heads(base)
  return { base .. 'heads', lists = true }
end

--- The key of the sorted set that a ready job stands in.
local function last_value_stands(base, job)
  return redis.call('ZSCORE', base .. 'heads', last_value_standing(job)) and base .. 'heads'
end

local function last_value_places(_, found)
  found[#found + 1] = { 'latest', 'hash' }
  found[#found + 1] = { 'heads', 'zset' }
  return found
end

--- What a step about jobs with these values, or tags, may meet: into `found`.
local function last_value_meets(values, found)
  for _, value in ipairs(values) do
    if last_value_key(last_value_tags(value)) then return last_value_places(nil, found) end
  end
  return found
end

--- Where this job is, for who checks: into `found` goes each place and 1.
local function last_value_found(base, job, found)
  if last_value_key(job) and redis.call('ZSCORE', base .. 'heads', last_value_standing(job)) then
    found[#found + 1] = 'heads'
    found[#found + 1] = 1
  end
  return found
end

--- What is noted of a key goes where it is no living job of that key. Answers how much was changed.
local function last_value_repair(base, _, key)
  local id = redis.call('HGET', base .. 'latest', key)
  local value = id and redis.call('HGET', base .. 'jobs', id)
  local job = value and string.byte(value) ~= 33 and value_parse(value)
  if not id or job and last_value_key(job) == key and not redis.call('ZSCORE', base .. 'dead', id) then return 0 end
  return redis.call('HDEL', base .. 'latest', key)
end
