--- Unique jobs: of one key one job waits or runs at a time, or until it is taken, or in a period. Who enqueues another
--- one is answered by the job that has the key, or refused. An entry of the index belongs to the state of its job: the
--- step that ends the state takes it away. There is no lifetime that stands in for that.
--- HOOKS: admit, instead, replace, owned, taken, kept, done, pass, rival, overdue, upkeep, counted, meets, places, ripen
--- META: none
--- JOB: tags (u: how long the key is its own, what a conflict does, ":", the key)
--- KEYS: unique, periods
--- STORE: list
--- ORDER: 97
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: last_value, ring, flows
--- @include "job/value"

--- `unique`: key -> id of the job that has it. `periods`: keys of jobs with a period, by when that is over, ms. A job
--- whose period is over keeps its key while it lives; one that is done keeps it until its period is over.

--- {lasts=, answer=, most=, key=} by the tags, or the value, of a job; nil where it has no key. `lasts`: "e" until it has
--- ended, "s" until it is taken, else ms. `answer`, of an enqueue that finds the key taken: "x" = the job that has it;
--- "f" = a refusal; "r" = that one gets the new envelope, where it waits; "d" = and, where it is scheduled, the new due
--- time, which is `most` ms behind its enqueue at the latest; "t" = gets the new envelope, where it waits, else the new
--- job follows when the period of `lasts` is over, which begins when a job is due.
local function unique_tag(text)
  local lasts, answer, most, key = string.match(text or '', '^[^;]-|u([es]?%d*)([xfrdt])(%d*):([%w_-]+)')
  return key and { lasts = lasts, answer = answer, most = tonumber(most) or 0, key = key } or nil
end

--- Of these jobs ({id=, key=, lasts=}) the keys are free where they are their own. `until_`: those whose period is not
--- over at this time keep them; nil: none does.
local function unique_free(base, jobs, until_)
  if #jobs == 0 then return end
  local keys, over, ended = {}, {}, {}
  for i, job in ipairs(jobs) do keys[i] = job.key end
  local owners = redis.call('HMGET', base .. 'unique', unpack(keys))
  for i, job in ipairs(jobs) do
    if owners[i] == job.id then
      local period = tonumber(job.lasts) and redis.call('ZSCORE', base .. 'periods', job.key)
      if not (period and until_ and tonumber(period) > until_) then
        over[#over + 1] = job.key
        if period then ended[#ended + 1] = job.key end
      end
    end
  end
  if #over > 0 then redis.call('HDEL', base .. 'unique', unpack(over)) end
  if #ended > 0 then redis.call('ZREM', base .. 'periods', unpack(ended)) end
end

--- A job that a consumer had lives on: it waits again. Where a newer one has its key by now, that keeps it.
local function unique_kept(base, job)
  local its = unique_tag(job.tags)
  if its and its.lasts == 's' then redis.call('HSETNX', base .. 'unique', its.key, job.id) end
end

--- These jobs ({id=, tags=, again=}) are gone for good, unless they are to come `again`.
local function unique_pass(base, _, jobs)
  local gone = {}
  for _, job in ipairs(jobs) do
    local its = not job.again and unique_tag(job.tags)
    if its then
      its.id = job.id
      gone[#gone + 1] = its
    end
  end
  unique_free(base, gone)
end
