--- A consumer may refuse a job: it is released, and does not come to this consumer again; others take it, in its place
--- (Q-08). Jobs that the same consumers have refused stand in one sorted set, from which all others take, so that
--- nothing is looked at that is not taken. Consumers are known by their terms, which no later one has. What all of them
--- have refused waits for another one.
--- HOOKS: refuse, shelf, unblock, heads, stands, found, places, keys, meets, waiters, audience, tell, closing, unheard,
---   restamp, ripen
--- META: none
--- JOB: tags (r: terms of the consumers that refused it, ascending, "." between)
--- KEYS: refusals, refused:<terms>
--- STORE: list
--- ORDER: 65
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: ttl, hold, last_value, ring, exclusive, groups, selectors, lifetime, sorted, schedules, flows, limits,
---   front, shard, shares
--- @include "order/score"
--- @include "queue/constants"
--- @include "schedule/member"
--- @include "consumer/most"

--- `refusals`: the terms that follow the names of the sets, which are "refused:1.7": ready jobs, members as of
--- `scheduled`, by `score_of`. "" are the lists, from which everybody takes.

--- So many sets may have jobs at a time, and so many consumers may have refused a job: the next one makes it a dead
--- letter.
local REFUSALS_SETS, REFUSALS_MOST = 64, 16

--- Of this call. `fresh`: set -> jobs that became ready; `mine`: the sets that a consumer takes from, where the call is
--- about one; `sets`: those that are known.
local REFUSALS = { fresh = {}, fresh_any = false }

--- The terms of those that refused a job, as text; nil where nobody has.
local function refusals_by(job)
  local terms = job.tags and string.match(job.tags, '|r([%d.]*)')
  return terms ~= '' and terms or nil
end

local function refusals_sets(base)
  if not REFUSALS.sets then
    REFUSALS.sets = {}
    for _, terms in ipairs(redis.call('SMEMBERS', base .. 'refusals')) do REFUSALS.sets[terms] = true end
  end
  return REFUSALS.sets
end

local function refusals_term(base, consumer)
  return redis.call('HGET', base .. 'consumer:' .. consumer, 'term') or '0'
end

--- Whether the consumer of this term takes from a set.
local function refusals_takes(term, terms)
  return terms == '' or not string.find('.' .. terms .. '.', '.' .. term .. '.', 1, true)
end

--- The sets that the consumer of this term takes from, nil: all there are; the lists first.
local function refusals_open(base, term)
  local found = {}
  for terms in pairs(refusals_sets(base)) do
    if not term or refusals_takes(term, terms) then found[#found + 1] = terms end
  end
  table.sort(found)
  table.insert(found, 1, '')
  return found
end

--- Whether there may be a set of these terms: it is known, or one more may be. Those without jobs give way to it.
local function refusals_possible(base, terms)
  local sets, count = refusals_sets(base), 0
  if sets[terms] then return true end
  for known in pairs(sets) do
    if redis.call('EXISTS', base .. 'refused:' .. known) == 1 or REFUSALS.fresh[known] then count = count + 1 end
  end
  return count < REFUSALS_SETS
end

--- A consumer that holds a job refuses it: the job's header is to say so. Answers why it is a dead letter, JSON, where
--- that cannot be noted.
local function refusals_refuse(base, job, consumer, now)
  local term, terms = refusals_term(base, consumer), {}
  for one in string.gmatch(refusals_by(job) or '', '%d+') do
    if one ~= term then terms[#terms + 1] = tonumber(one) end
  end
  if #terms >= REFUSALS_MOST then
    -- those that have left cannot come again
    local registered, kept = {}, {}
    for _, name in ipairs(redis.call('ZRANGE', base .. 'consumers', '0', CONSUMERS_LAST)) do
      registered[tonumber(refusals_term(base, name))] = true
    end
    for _, one in ipairs(terms) do
      if registered[one] then kept[#kept + 1] = one end
    end
    terms = kept
  end
  terms[#terms + 1] = tonumber(term)
  table.sort(terms)
  for i, one in ipairs(terms) do terms[i] = string.format('%d', one) end
  local text = table.concat(terms, '.')
  if #terms > REFUSALS_MOST or not refusals_possible(base, text) then
    return cjson.encode({ kind = 'refused', type = 'JobRefused', at = now, attempt = job.attempts,
      message = 'more consumers refused it than can be remembered' })
  end
  REFUSALS.fresh[text] = REFUSALS.fresh[text] or 0
  job.tags = string.gsub(job.tags or '', '|r[%d.]*', '') .. '|r' .. text
end

local function refusals_fresh(terms, count)
  REFUSALS.fresh[terms] = (REFUSALS.fresh[terms] or 0) + count
  REFUSALS.fresh_any = true
end

--- These jobs ({id=, level=, position=, due=, tags=, ...}) are to be ready: those that some consumer refused go to
--- their sets; the others are returned.
local function refusals_shelf(base, _, jobs)
  local rest, members = {}, {}
  for _, job in ipairs(jobs) do
    local terms = refusals_by(job)
    if terms then
      local its, member = members[terms] or {}, schedule_member(job, job.id)
      members[terms] = its
      its[#its + 1] = job.due > 0 and string.format('%d', score_of(job.level, job.due)) or score_text(member)
      its[#its + 1] = member
    else
      rest[#rest + 1] = job
    end
  end
  for terms, its in pairs(members) do
    redis.call('SADD', base .. 'refusals', terms)
    refusals_sets(base)[terms] = true
    redis.call('ZADD', base .. 'refused:' .. terms, unpack(its))
    refusals_fresh(terms, #its / 2)
  end
  if #rest > 0 then refusals_fresh('', #rest) end
  return rest
end

--- The key of the sorted set that a ready job stands in; nil where it stands in a list.
local function refusals_stands(base, job)
  local terms = refusals_by(job)
  local key = terms and base .. 'refused:' .. terms
  return key and redis.call('ZSCORE', key, schedule_member(job, job.id)) and key
end

--- A job that waits leaves: out of its place, and out of any other. Answers `ready`; nil where it stands in no set.
local function refusals_unblock(base, _, job)
  local member, gone = schedule_member(job, job.id), 0
  for terms in pairs(refusals_sets(base)) do gone = gone + redis.call('ZREM', base .. 'refused:' .. terms, member) end
  return gone > 0 and 'ready' or nil
end

--- Where this job is, for who checks: into `found` goes each place and 1.
local function refusals_found(base, job, found)
  local member = schedule_member(job, job.id)
  for terms in pairs(refusals_sets(base)) do
    if redis.call('ZSCORE', base .. 'refused:' .. terms, member) then
      found[#found + 1] = 'refused:' .. terms
      found[#found + 1] = 1
    end
  end
  return found
end

--- Where ready jobs stand beside the lists: the sets that a consumer takes from, nil or without `how`: all. `lists`:
--- whether it takes from those too. `how` = {ranked=, mine=}: it takes now, not where others are ahead, of which
--- `outranked` says whether there are such; of the consumer that this call is about, if there is one.
local function refusals_heads(base, consumer, how)
  local heads = { lists = false }
  local open = how and how.mine and REFUSALS.mine
    or refusals_open(base, how and consumer and refusals_term(base, consumer.name) or nil)
  if how and how.ranked then
    --- @include "refusal/ranks"
    open, heads.outranked = refusal_ranks_left(base, consumer, open)
  end
  for _, terms in ipairs(open) do
    if terms == '' then heads.lists = true else heads[#heads + 1] = base .. 'refused:' .. terms end
  end
  return heads
end

local function refusals_places(_, found)
  found[#found + 1] = { 'refusals', 'set' }
  return found
end

--- Those of its keys that have names.
local function refusals_keys(base, found)
  for terms in pairs(refusals_sets(base)) do found[#found + 1] = { 'refused:' .. terms, 'zset' } end
  return found
end

--- What a step about jobs with these values, or tags, may meet: into `found`.
local function refusals_meets(values, found)
  local any = false
  for _, value in ipairs(values) do
    local terms = value and string.match(value, '^[^;]-|r([%d.]+)')
    if terms then
      found[#found + 1] = { 'refused:' .. terms, 'zset' }
      any = true
    end
  end
  return any and refusals_places(nil, found) or found
end

--- Those who wait and may be notified first: into `names`. What is looked at to notify them is met here, before
--- anything is written, where it is of another type.
local function refusals_waiters(base, names)
  --- @include "order/lists_count"
  lists_count(base)
  for terms in pairs(refusals_sets(base)) do redis.call('ZCARD', base .. 'refused:' .. terms) end
  for _, name in ipairs(redis.call('ZRANGE', base .. 'interested', '0', WAKE_LAST)) do names[#names + 1] = name end
end

--- What follows is about the work of this consumer; false: of all.
local function refusals_audience(base, consumer)
  REFUSALS.mine = refusals_open(base, consumer and refusals_term(base, consumer) or nil)
  if not consumer then REFUSALS.mine = nil end
end

--- Ready jobs that all registered consumers have refused: "!" and how many, into `found`.
local function refusals_unheard(base, found)
  local terms_of, idle, alone = {}, true, 0
  for _, name in ipairs(redis.call('ZRANGE', base .. 'consumers', '0', CONSUMERS_LAST)) do
    local row = redis.call('HMGET', base .. 'consumer:' .. name, 'mode', 'term')
    if row[1] == 'acquire' then
      terms_of[#terms_of + 1] = row[2] or '0'
      idle = false
    end
  end
  for terms in pairs(idle and {} or refusals_sets(base)) do
    local ready, taken = redis.call('ZCARD', base .. 'refused:' .. terms), false
    for _, term in ipairs(terms_of) do taken = taken or refusals_takes(term, terms) end
    if not taken then alone = alone + ready end
  end
  if alone > 0 then
    found[#found + 1] = '!'
    found[#found + 1] = alone
  end
  return found
end

--- The queue's kind changes, and it has no jobs.
local function refusals_restamp(base)
  redis.call('DEL', base .. 'refusals')
end
