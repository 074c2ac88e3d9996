--- Of the jobs that name a limit so many are delivered at a time as it allows; others, and those of other limits, go on.
--- A job has a permit of each limit that it names from when it may be taken until it is gone, or put off: while it is
--- ready or held. One that finds no permit stands in that limit's set, where no pull looks, and gets the next one that
--- comes back in the order of priority and position.
--- HOOKS: admit, busy, claim, shelf, unblock, ahead, pass, delayed, done, heads, stands, behind, overdue, upkeep, allow,
---   places, meets, found, repair
--- META: blocked
--- JOB: tags (l: a limit, escaped, and how many it allows)
--- KEYS: limits, permits, claims, heads, blocked, reopened, group:<limit>
--- STORE: list
--- ORDER: 45
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: groups, selectors, last_value, lifetime, ring, hold, sorted, refusals, flows
--- @include "job/value"
--- @include "order/score"
--- @include "queue/count"
--- @include "schedule/member"

--- `limits`: limit, or what stands before its "=", -> how many it allows, where an operator has said so: else it is what
--- each job says. `permits`: limit -> how many are out. `claims`: id -> the limits that it has permits of, with spaces
--- between them. `heads`: ready jobs that have theirs: members as of `scheduled`, by `score_of`. `group:<limit>`: jobs
--- that wait for it, likewise. `blocked`: limits for which some wait. `reopened`: those of them that may have permits.

--- Jobs that one step looks at for the permits that came back.
local LIMITS_PAGE = 64

--- Of this call: limit -> permits that are out, and how many were set; which of them have changed.
local LIMITS = { out = {}, most = {}, changed = {} }

--- The limits of a job by its tags: {limit, how many it says, ...}; nil where it names none.
local function limits_of(tags)
  if not tags or not string.find(tags, '|l', 1, true) then return nil end
  local found = {}
  for limit, most in string.gmatch(tags, '|l([^|:]*):(%d+)') do
    found[#found + 1] = limit
    found[#found + 1] = most
  end
  return found[1] and found or nil
end

--- Read what is not known yet of these limits.
local function limits_read(base, limits)
  local ask = {}
  for _, limit in ipairs(limits) do
    if not LIMITS.out[limit] then
      LIMITS.out[limit] = 0
      ask[#ask + 1] = limit
    end
  end
  if #ask == 0 then return end
  for i, out in ipairs(redis.call('HMGET', base .. 'permits', unpack(ask))) do
    LIMITS.out[ask[i]] = math.max(0, tonumber(out) or 0)
  end
  if LIMITS.set == nil then LIMITS.set = redis.call('EXISTS', base .. 'limits') == 1 end
  if not LIMITS.set then return end
  local fields = {}
  for i, limit in ipairs(ask) do
    fields[2 * i - 1], fields[2 * i] = limit, string.match(limit, '^[^=]*')
  end
  local set = redis.call('HMGET', base .. 'limits', unpack(fields))
  for i, limit in ipairs(ask) do
    LIMITS.most[limit] = tonumber(set[2 * i - 1]) or tonumber(set[2 * i])
  end
end

--- How many a limit allows; `said`: by the job.
local function limits_most(limit, said)
  return LIMITS.most[limit] or tonumber(said)
end

local function limits_count(limit, by)
  LIMITS.out[limit] = math.max(0, LIMITS.out[limit] + by)
  LIMITS.changed[limit] = true
end

--- The first of a job's limits that has no permit; nil where each has one.
local function limits_refusing(mine)
  for i = 1, #mine, 2 do
    if LIMITS.out[mine[i]] >= limits_most(mine[i], mine[i + 1]) then return mine[i] end
  end
end

--- A job takes a permit of each of its limits; returns what `claims` says of it.
local function limits_take(mine)
  local names = {}
  for i = 1, #mine, 2 do
    limits_count(mine[i], 1)
    names[#names + 1] = mine[i]
  end
  return table.concat(names, ' ')
end

local function limits_write(base)
  local out, none = {}, {}
  for limit in pairs(LIMITS.changed) do
    if LIMITS.out[limit] > 0 then
      out[#out + 1] = limit
      out[#out + 1] = string.format('%d', LIMITS.out[limit])
    else
      none[#none + 1] = limit
    end
  end
  LIMITS.changed = {}
  if #out > 0 then redis.call('HSET', base .. 'permits', unpack(out)) end
  if #none > 0 then redis.call('HDEL', base .. 'permits', unpack(none)) end
end

--- Those of a list {limit, how many it says, ...}.
local function limits_names(mine, names)
  for i = 1, #mine, 2 do names[#names + 1] = mine[i] end
  return names
end

--- Whether a job of this run would have to wait for a permit.
local function limits_busy(base, run)
  local mine = limits_of(run.tags)
  if not mine then return nil end
  limits_read(base, limits_names(mine, {}))
  return limits_refusing(mine) and true or nil
end

--- It was delivered directly: it has its permits.
local function limits_claim(base, job)
  local mine = limits_of(job.tags)
  if not mine or redis.call('HEXISTS', base .. 'claims', job.id) == 1 then return end
  limits_read(base, limits_names(mine, {}))
  redis.call('HSET', base .. 'claims', job.id, limits_take(mine))
  limits_write(base)
end

local function limits_before(one, other)
  if one.level ~= other.level then return one.level > other.level end
  return one.position < other.position
end

--- These jobs ({id=, level=, position=, due=, tags=, ...}) are to be ready: new, due, or back from a consumer. Those that
--- name limits go to their places; the others are returned. `queue.kept_back` counts those that are not ready after all.
--- What waits for a permit waits by its position, and has no due time any more.
local function limits_shelf(base, queue, jobs)
  local mine, ids, names, rest = {}, {}, {}, {}
  for _, job in ipairs(jobs) do
    job.limits = limits_of(job.tags)
    if job.limits then
      mine[#mine + 1] = job
      limits_names(job.limits, names)
    else
      rest[#rest + 1] = job
    end
  end
  if #mine == 0 then return jobs end
  table.sort(mine, limits_before)
  for i, job in ipairs(mine) do ids[i] = job.id end
  limits_read(base, names)
  local has, open, claims = redis.call('HMGET', base .. 'claims', unpack(ids)), {}, {}
  local places, blocked, stored, waiting = {}, {}, {}, 0
  for i, job in ipairs(mine) do
    local member, refusing = schedule_member(job, job.id), not has[i] and limits_refusing(job.limits)
    if refusing then
      local its = places[refusing]
      if not its then
        its = {}
        places[refusing] = its
        blocked[#blocked + 1] = '0'
        blocked[#blocked + 1] = refusing
      end
      its[#its + 1] = score_text(member)
      its[#its + 1] = member
      waiting = waiting + 1
      if job.due > 0 then
        job.due = 0
        stored[#stored + 1] = job.id
        stored[#stored + 1] = value_header(job) .. job.envelope
      end
    else
      open[#open + 1] = job.due > 0 and string.format('%d', score_of(job.level, job.due)) or score_text(member)
      open[#open + 1] = member
      if not has[i] then
        claims[#claims + 1] = job.id
        claims[#claims + 1] = limits_take(job.limits)
      end
    end
  end
  if #claims > 0 then redis.call('HSET', base .. 'claims', unpack(claims)) end
  limits_write(base)
  if #open > 0 then redis.call('ZADD', base .. 'heads', unpack(open)) end
  if waiting > 0 then
    for limit, its in pairs(places) do redis.call('ZADD', base .. 'group:' .. limit, unpack(its)) end
    redis.call('ZADD', base .. 'blocked', unpack(blocked))
    count_up(base .. 'meta', 'blocked', waiting)
    queue.kept_back = (queue.kept_back or 0) + waiting
  end
  if #stored > 0 then redis.call('HSET', base .. 'jobs', unpack(stored)) end
  return rest
end

--- The first of those that wait for a limit get its permits, as far as it has some; one that another of its limits
--- refuses waits for that from now on, and the next one is looked at. `room`: how many jobs may be looked at. Returns how
--- many became ready, and what is left of `room`; 0: there may be more.
local function limits_open_one(base, limit, room)
  local key, ready = base .. 'group:' .. limit, 0
  while room > 0 do
    -- a key of another type gives nothing: what else this step does must not fail by it
    local first = redis.pcall('ZRANGE', key, '0', '0')[1]
    if not first then break end
    local id = string.sub(first, MEMBER_PREFIX + 1)
    local value = redis.call('HGET', base .. 'jobs', id)
    local job = value and string.byte(value) ~= 33 and value_parse(value)
    -- what is no such job holds up nobody: who pulls it finds out
    local its, refusing = job and limits_of(job.tags), nil
    room = room - 1
    if its then
      limits_read(base, limits_names(its, {}))
      for i = 1, #its, 2 do
        if its[i] == limit and LIMITS.out[limit] >= limits_most(limit, its[i + 1]) then return ready, room end
      end
      refusing = limits_refusing(its)
    end
    if refusing then
      local moved = redis.pcall('ZADD', base .. 'group:' .. refusing, score_text(first), first)
      if type(moved) == 'table' then return ready, room end
      redis.call('ZADD', base .. 'blocked', '0', refusing)
    else
      redis.call('ZADD', base .. 'heads', score_text(first), first)
      if its then redis.call('HSET', base .. 'claims', id, limits_take(its)) end
      ready = ready + 1
    end
    redis.call('ZREM', key, first)
  end
  if redis.call('EXISTS', key) == 0 then redis.call('ZREM', base .. 'blocked', limit) end
  return ready, room
end

--- Give the permits that these limits have to jobs that wait for them, a page in each step. `queue.opened` counts those
--- that are ready by that.
local function limits_open(base, queue, limits)
  local room, ready, later = LIMITS_PAGE, 0, {}
  for i, waits in ipairs(redis.call('ZMSCORE', base .. 'blocked', unpack(limits))) do
    if waits and room == 0 then
      later[#later + 1] = limits[i]
    elseif waits then
      local count
      count, room = limits_open_one(base, limits[i], room)
      ready = ready + count
      if room == 0 and redis.call('ZSCORE', base .. 'blocked', limits[i]) then later[#later + 1] = limits[i] end
    end
  end
  if #later > 0 then redis.call('SADD', base .. 'reopened', unpack(later)) end
  if ready > 0 then
    count_up(base .. 'meta', 'blocked', -ready)
    queue.opened = (queue.opened or 0) + ready
  end
  limits_write(base)
end

--- These jobs have their permits no longer; `claims`: what was noted of them, in the same order.
local function limits_let_go(base, queue, ids, claims)
  local gone, limits, seen = {}, {}, {}
  for i, id in ipairs(ids) do
    if claims[i] then
      gone[#gone + 1] = id
      for limit in string.gmatch(claims[i], '%S+') do
        if not seen[limit] then limits[#limits + 1] = limit end
        seen[limit] = (seen[limit] or 0) + 1
      end
    end
  end
  if #gone == 0 then return end
  limits_read(base, limits)
  for _, limit in ipairs(limits) do limits_count(limit, -seen[limit]) end
  redis.call('HDEL', base .. 'claims', unpack(gone))
  limits_open(base, queue, limits)
end

--- These jobs ({id=, tags=}) are gone for good, or leave their places until they come again. `queue.opened` counts those
--- that are ready by that.
local function limits_pass(base, queue, jobs)
  local ids = {}
  for _, job in ipairs(jobs) do
    if limits_of(job.tags) then ids[#ids + 1] = job.id end
  end
  if #ids > 0 then limits_let_go(base, queue, ids, redis.call('HMGET', base .. 'claims', unpack(ids))) end
end

--- The same of jobs that wait for another time: their permits are for others meanwhile.
local function limits_delayed(base, queue, jobs)
  limits_pass(base, queue, jobs)
end

--- The same of jobs that are done, whose values are about to go.
local function limits_done(base, queue, gone)
  local claims = redis.pcall('HMGET', base .. 'claims', unpack(gone))
  if not claims.err then limits_let_go(base, queue, gone, claims) end
end

--- A job that waits leaves: out of its place. Answers whether it was `ready` or `blocked`; nil where it stands in no
--- place of limits.
local function limits_unblock(base, _, job)
  local mine = limits_of(job.tags)
  if not mine then return nil end
  local member = schedule_member(job, job.id)
  if redis.call('ZREM', base .. 'heads', member) == 1 then return 'ready' end
  for i = 1, #mine, 2 do
    local key = base .. 'group:' .. mine[i]
    if redis.call('ZREM', key, member) == 1 then
      if redis.call('EXISTS', key) == 0 then redis.call('ZREM', base .. 'blocked', mine[i]) end
      count_up(base .. 'meta', 'blocked', -1)
      return 'blocked'
    end
  end
end

--- The job that goes before this one, which waits for a permit; nil where it waits for none.
local function limits_ahead(base, job)
  local mine = limits_of(job.tags)
  for i = 1, mine and #mine or 0, 2 do
    local key = base .. 'group:' .. mine[i]
    if redis.call('ZSCORE', key, schedule_member(job, job.id)) then
      return string.sub(redis.call('ZRANGE', key, '0', '0')[1], MEMBER_PREFIX + 1)
    end
  end
end

--- Whether there are permits that nobody was offered yet.
local function limits_overdue(base)
  return redis.call('EXISTS', base .. 'reopened') == 1
end

--- Where ready jobs stand beside the lists.
local function limits_heads(base)
  return { base .. 'heads', lists = true }
end

--- The one of these in which a ready job stands; nil: in none.
local function limits_stands(base, job)
  return redis.call('ZSCORE', base .. 'heads', schedule_member(job, job.id)) and base .. 'heads'
end

--- How many stand before this job among those that wait for its limit; nil where it waits for none.
local function limits_behind(base, job)
  local mine = limits_of(job.tags)
  for i = 1, mine and #mine or 0, 2 do
    local rank = redis.call('ZRANK', base .. 'group:' .. mine[i], schedule_member(job, job.id))
    if rank then return rank end
  end
end

local function limits_places(_, found)
  for _, key in ipairs({ 'limits', 'permits', 'claims' }) do found[#found + 1] = { key, 'hash' } end
  found[#found + 1] = { 'heads', 'zset' }
  found[#found + 1] = { 'blocked', 'zset' }
  found[#found + 1] = { 'reopened', 'set' }
  return found
end

--- What a step about jobs with these values, or tags, may meet: into `found`.
local function limits_meets(values, found)
  local seen, any = {}, false
  for _, value in ipairs(values) do
    local tags = value and string.match(value, '^[%d,-]*(|[^;]*)')
    for limit in string.gmatch(tags or '', '|l([^|:]*)') do
      if not seen[limit] then
        seen[limit], any = true, true
        found[#found + 1] = { 'group:' .. limit, 'zset' }
      end
    end
  end
  return any and limits_places(nil, found) or found
end
