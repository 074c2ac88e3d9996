--- Of the jobs that name a limit so many are delivered as it allows: at a time, or, of a rate, in a time; others, and
--- those of other limits, go on. A job has a permit of each limit that it names from when it may be taken until it is gone,
--- or put off: while it is ready or held. Of a rate it has tokens set aside while it is ready, and pays them when it is
--- taken. One that finds no permit, or no tokens, stands in that limit's set, where no pull looks, and gets the next ones
--- that come in the order of priority and position.
--- HOOKS: admit, busy, claim, shelf, unblock, ahead, pass, delayed, done, taken, heads, stands, behind, timed, overdue,
---   rearms, upkeep, allow, places, meets, found, repair, ripen
--- META: blocked, corrected_by
--- JOB: tags (l: a limit, escaped, and how many it allows)
--- KEYS: limits, declared, permits, claims, heads, blocked, reopened, rates, tokens_due, group:<limit>
--- STORE: list
--- ORDER: 45
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: groups, selectors, last_value, lifetime, ring, hold, sorted, refusals, flows, front, shard
--- @include "job/value"
--- @include "limit/tokens"
--- @include "order/score"
--- @include "queue/count"
--- @include "schedule/member"
--- @include "schedule/watch_sooner"

--- The name of a rate begins with "@", and what it allows is "<count>/<ms>+<burst>", with "*<cost>" where a job says it.
--- `limits`: limit, or "<name>=*" for all its keys -> how many it allows, if an operator has said so. `declared`: limit
--- -> "<enqueued, ms> <how many>" of the job that was enqueued last, while permits of it are out or jobs wait for it: that
--- number holds for all of them. `permits`: limit -> how many are out, or tokens set aside. `claims`: id -> the limits that it has permits
--- of, with spaces between them; of a rate with "*" and how many tokens are set aside, or with "!" and of which attempt
--- they are paid. `heads`: ready jobs that have theirs: members as of `scheduled`, by `score_of`. `group:<limit>`: jobs
--- that wait for it, likewise. `blocked`: limits for which some wait. `reopened`: those of them that may have permits.
--- `tokens_due`: rates that are waited for, by when the first in line finds its tokens, ms.

--- Jobs that one step looks at for the permits that came back.
local LIMITS_PAGE = 64

--- Of this call: limit -> permits that are out, what was set, what its jobs declare and since when; which of them have
--- changed; limits that are waited for; those that are declared anew, and those that allow another number by that.
local LIMITS = { out = {}, most = {}, said = {}, since = {}, changed = {}, waits = {}, declared = {}, moved = {} }

local function limits_is_rate(limit)
  return string.byte(limit) == 64
end

--- The limits of a job by its tags: {limit, what it says that it allows, ...}; nil where it names none.
local function limits_of(tags)
  if not tags or not string.find(tags, '|l', 1, true) then return nil end
  local found = {}
  for limit, most in string.gmatch(tags, '|l([^|:]*):([%d/+*]+)') do
    found[#found + 1] = limit
    found[#found + 1] = most
  end
  return found[1] and found or nil
end

--- Read what is not known yet of these limits.
local function limits_read(base, limits)
  local ask, rates = {}, {}
  for _, limit in ipairs(limits) do
    if not LIMITS.out[limit] then
      LIMITS.out[limit] = 0
      ask[#ask + 1] = limit
      if limits_is_rate(limit) then rates[#rates + 1] = limit end
    end
  end
  if #ask == 0 then return end
  for i, out in ipairs(redis.call('HMGET', base .. 'permits', unpack(ask))) do
    LIMITS.out[ask[i]] = math.max(0, tonumber(out) or 0)
  end
  for i, waits in ipairs(redis.call('ZMSCORE', base .. 'blocked', unpack(ask))) do
    LIMITS.waits[ask[i]] = waits and true or nil
  end
  for i, text in ipairs(redis.call('HMGET', base .. 'declared', unpack(ask))) do
    local since, said = string.match(text or '', '^(%d+) ([%d/+]+)$')
    LIMITS.since[ask[i]], LIMITS.said[ask[i]] = tonumber(since), said
  end
  if rates[1] then
    for i, full in ipairs(redis.call('ZMSCORE', base .. 'rates', unpack(rates))) do
      TOKENS.full[rates[i]] = tonumber(full) or -math.huge
    end
  end
  if LIMITS.set == nil then LIMITS.set = redis.call('EXISTS', base .. 'limits') == 1 end
  if not LIMITS.set then return end
  local fields = {}
  for i, limit in ipairs(ask) do
    fields[2 * i - 1], fields[2 * i] = limit, (string.gsub(limit, '=.*$', '=*'))
  end
  local set = redis.call('HMGET', base .. 'limits', unpack(fields))
  for i, limit in ipairs(ask) do LIMITS.most[limit] = set[2 * i - 1] or set[2 * i] or nil end
end

--- These jobs ({limits=, enqueued=}) say what their limits allow; what the job says that was enqueued last holds for all.
--- A time in the future is none: the clock went back. `again`: they have said so before, so what was enqueued in the same
--- ms stands.
local function limits_declare(jobs, now, again)
  for _, job in ipairs(jobs) do
    local enqueued, mine = job.enqueued or now, job.limits
    for i = 1, #mine, 2 do
      local limit, said, since = mine[i], string.match(mine[i + 1], '^[^*]*'), LIMITS.since[mine[i]]
      if not since or since < enqueued or since == enqueued and not again or since > now then
        LIMITS.moved[limit] = LIMITS.moved[limit] or LIMITS.said[limit] ~= said
        LIMITS.since[limit], LIMITS.said[limit], LIMITS.declared[limit] = enqueued, said, true
      end
    end
  end
end

--- What a rate allows, and what a job that says this costs.
local function limits_rule(limit, said)
  return tokens_rule(said, LIMITS.most[limit] or LIMITS.said[limit])
end

--- ms until this limit lets a job through that says this; nil: no time does, but others that go.
local function limits_wait(limit, said, now)
  if limits_is_rate(limit) then return tokens_wait(limit, limits_rule(limit, said), LIMITS.out[limit], now) end
  return LIMITS.out[limit] < (tonumber(LIMITS.most[limit] or LIMITS.said[limit] or said) or 0) and 0 or nil
end

local function limits_count(limit, by)
  LIMITS.out[limit] = math.max(0, LIMITS.out[limit] + by)
  LIMITS.changed[limit] = true
end

--- The first of a job's limits that has no permit for it; nil where each has one. `behind`: a limit for which others wait
--- has none either: what is free and was not offered yet is theirs.
local function limits_refusing(mine, now, behind)
  for i = 1, #mine, 2 do
    if limits_wait(mine[i], mine[i + 1], now) ~= 0 or behind and LIMITS.waits[mine[i]] then return mine[i] end
  end
end

--- A job takes a permit of each of its limits; returns what `claims` says of it. `paid`: of which attempt it pays its
--- tokens now; nil: they are set aside.
local function limits_take(mine, now, paid)
  local names = {}
  for i = 1, #mine, 2 do
    local limit, name = mine[i], mine[i]
    if not limits_is_rate(limit) then
      limits_count(limit, 1)
    else
      local rule = limits_rule(limit, mine[i + 1])
      if paid then
        tokens_pay(limit, rule, now)
        name = string.format('%s!%d', limit, paid)
      else
        limits_count(limit, rule.cost)
        name = string.format('%s*%d', limit, rule.cost)
      end
    end
    names[#names + 1] = name
  end
  return table.concat(names, ' ')
end

--- What a claim says: limit, how many permits are out by it or tokens set aside, and the attempt that is paid or nil.
local function limits_claimed(claim)
  return string.gmatch(claim, '([^%s*!]+)([*!]?)(%d*)')
end

--- What was declared goes of those of these limits for which nobody waits, and of which no permits are out.
local function limits_forget(base, limits)
  local over = {}
  for _, limit in ipairs(limits) do
    if not LIMITS.waits[limit] and LIMITS.out[limit] == 0 then
      over[#over + 1] = limit
      LIMITS.since[limit], LIMITS.said[limit], LIMITS.declared[limit] = nil, nil, nil
    end
  end
  if #over > 0 then redis.call('HDEL', base .. 'declared', unpack(over)) end
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
  limits_forget(base, none)
  local said = {}
  for limit in pairs(LIMITS.declared) do
    if LIMITS.out[limit] > 0 or LIMITS.waits[limit] then
      said[#said + 1] = limit
      said[#said + 1] = string.format('%d %s', LIMITS.since[limit], LIMITS.said[limit])
    else
      LIMITS.since[limit], LIMITS.said[limit] = nil, nil
    end
  end
  LIMITS.declared = {}
  if #said > 0 then redis.call('HSET', base .. 'declared', unpack(said)) end
end

--- Those of a list {limit, how many it says, ...}.
local function limits_names(mine, names)
  for i = 1, #mine, 2 do names[#names + 1] = mine[i] end
  return names
end

--- Whether a job of this run would have to wait for a permit.
local function limits_busy(base, run, now)
  local mine = limits_of(run.tags)
  if not mine then return nil end
  limits_read(base, limits_names(mine, {}))
  limits_declare({ { limits = mine } }, now)
  return limits_refusing(mine, now, true) and true or nil
end

--- It was delivered directly: it has its permits, and its tokens are paid.
local function limits_claim(base, job, _, _, now)
  local mine = limits_of(job.tags)
  if not mine or redis.call('HEXISTS', base .. 'claims', job.id) == 1 then return end
  limits_read(base, limits_names(mine, {}))
  limits_declare({ { limits = mine, enqueued = job.enqueued } }, now)
  redis.call('HSET', base .. 'claims', job.id, limits_take(mine, now, job.attempts or 0))
  limits_write(base)
  tokens_write(base, now)
end

--- The first one that waits for a rate: when it finds its tokens is noted, and who watches learns of it.
local function limits_arm(base, queue, rate)
  -- a key of another type gives nothing, as where they are opened
  local first = redis.pcall('ZRANGE', base .. 'group:' .. rate, '0', '0')[1]
  local value = first and redis.call('HGET', base .. 'jobs', string.sub(first, MEMBER_PREFIX + 1))
  local wait
  for limit, said in string.gmatch(value and string.match(value, '^[%d,-]*(|[^;]*)') or '', '|l([^|:]*):([%d/+*]+)') do
    if limit == rate then wait = limits_wait(rate, said, queue.now) end
  end
  if not wait then
    redis.call('ZREM', base .. 'tokens_due', rate)
    return
  end
  local due = math.ceil(queue.now + wait)
  local known = redis.call('ZCOUNT', base .. 'tokens_due', '-inf', string.format('%d', due))
    + redis.call('ZCOUNT', base .. 'scheduled', '-inf', string.format('%d', due))
  redis.call('ZADD', base .. 'tokens_due', string.format('%d', due), rate)
  if known > 0 then return end
  if queue.pulls or queue.looks then
    -- the pull of this step sees to it
    queue.sooner = true
  else
    watch_sooner(base, queue.now)
  end
end

--- Nobody waits for a limit any more, where that is so.
local function limits_unwanted(base, limit)
  if redis.call('EXISTS', base .. 'group:' .. limit) == 1 then return end
  redis.call('ZREM', base .. 'blocked', limit)
  if limits_is_rate(limit) then redis.call('ZREM', base .. 'tokens_due', limit) end
  limits_read(base, { limit })
  LIMITS.waits[limit] = nil
  limits_forget(base, { limit })
end

--- A job that has its permits may be taken; `job`: nil where something else stood there.
local function limits_ready(base, job, id, member)
  --- @if strand
  if job and not job.damaged then
    job.id = id
    --- @each strand(base, { job })
    return
  end
  --- @end
  redis.call('ZADD', base .. 'heads', score_text(member), member)
end

--- The first of those that wait for a limit get its permits, as far as it has some; one that another of its limits
--- refuses waits for that from now on, and the next one is looked at. `room`: how many jobs may be looked at. Returns how
--- many became ready, and what is left of `room`; 0: there may be more.
local function limits_open_one(base, queue, limit, room)
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
      limits_declare({ { limits = its, enqueued = job.enqueued } }, queue.now, true)
      for i = 1, #its, 2 do
        if its[i] == limit and limits_wait(limit, its[i + 1], queue.now) ~= 0 then
          if limits_is_rate(limit) then limits_arm(base, queue, limit) end
          return ready, room
        end
      end
      refusing = limits_refusing(its, queue.now)
    end
    if refusing then
      local moved = redis.pcall('ZADD', base .. 'group:' .. refusing, score_text(first), first)
      if type(moved) == 'table' then return ready, room end
      redis.call('ZADD', base .. 'blocked', '0', refusing)
      LIMITS.waits[refusing] = true
      if limits_is_rate(refusing) then limits_arm(base, queue, refusing) end
    else
      limits_ready(base, job, id, first)
      if its then redis.call('HSET', base .. 'claims', id, limits_take(its, queue.now)) end
      ready = ready + 1
    end
    redis.call('ZREM', key, first)
  end
  limits_unwanted(base, limit)
  return ready, room
end

--- Some of the limits that are still to be offered; they are noted no longer.
local function limits_reopened(base, count)
  local limits = redis.call('SRANDMEMBER', base .. 'reopened', count)
  if #limits > 0 then redis.call('SREM', base .. 'reopened', unpack(limits)) end
  return limits
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
      count, room = limits_open_one(base, queue, limits[i], room)
      ready = ready + count
      if room == 0 and redis.call('ZSCORE', base .. 'blocked', limits[i]) then later[#later + 1] = limits[i] end
    end
  end
  -- a job that was looked at may say another number, which holds for all that wait
  for limit in pairs(LIMITS.moved) do
    if LIMITS.waits[limit] then later[#later + 1] = limit end
  end
  LIMITS.moved = {}
  if #later > 0 then redis.call('SADD', base .. 'reopened', unpack(later)) end
  if ready > 0 then
    count_up(base .. 'meta', 'blocked', -ready)
    queue.opened = (queue.opened or 0) + ready
  end
  limits_write(base)
  tokens_write(base, queue.now)
end

--- What these claims say is out no longer. Returns the limits that may have permits by that.
local function limits_return(base, claims)
  local limits, seen = {}, {}
  for _, claim in ipairs(claims) do
    for limit, sign, count in limits_claimed(claim) do
      if sign ~= '!' then
        if not seen[limit] then limits[#limits + 1] = limit end
        seen[limit] = (seen[limit] or 0) + (tonumber(count) or 1)
      end
    end
  end
  if #limits > 0 then limits_read(base, limits) end
  for _, limit in ipairs(limits) do limits_count(limit, -seen[limit]) end
  return limits
end

--- These jobs have their permits no longer; `claims`: what was noted of them, in the same order.
local function limits_let_go(base, queue, ids, claims)
  local gone, said = {}, {}
  for i, id in ipairs(ids) do
    if claims[i] then
      gone[#gone + 1] = id
      said[#said + 1] = claims[i]
    end
  end
  if #gone == 0 then return end
  local limits = limits_return(base, said)
  redis.call('HDEL', base .. 'claims', unpack(gone))
  if #limits > 0 then limits_open(base, queue, limits) end
end

--- These jobs ({id=, tags=}) are gone for good, or leave their places until they come again. `queue.opened` counts those
--- that are ready by that.
local function limits_pass(base, queue, jobs)
  local ids, names = {}, {}
  for _, job in ipairs(jobs) do
    local mine = limits_of(job.tags)
    if mine then
      ids[#ids + 1] = job.id
      limits_names(mine, names)
    end
  end
  if #ids == 0 then return end
  limits_let_go(base, queue, ids, redis.call('HMGET', base .. 'claims', unpack(ids)))
  -- some may have waited, and left that place before
  limits_read(base, names)
  for i, waits in ipairs(redis.call('ZMSCORE', base .. 'blocked', unpack(names))) do
    LIMITS.waits[names[i]] = waits and true or nil
    if not waits and limits_is_rate(names[i]) then redis.call('ZREM', base .. 'tokens_due', names[i]) end
  end
  limits_forget(base, names)
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
local function limits_unblock(base, queue, job)
  local mine = limits_of(job.tags)
  if not mine then return nil end
  local member = schedule_member(job, job.id)
  if redis.call('ZREM', base .. 'heads', member) == 1 then return 'ready' end
  for i = 1, #mine, 2 do
    local key = base .. 'group:' .. mine[i]
    if redis.call('ZREM', key, member) == 1 then
      limits_unwanted(base, mine[i])
      -- the next one may cost less
      if limits_is_rate(mine[i]) and not string.find(mine[i + 1], '*1', -2, true) then
        limits_read(base, { mine[i] })
        limits_arm(base, queue, mine[i])
      end
      count_up(base .. 'meta', 'blocked', -1)
      return 'blocked'
    end
  end
end

--- Whether there are permits that nobody was offered yet. A key of another type is met here, before anything is taken.
local function limits_overdue(base, now)
  for _, key in ipairs({ 'limits', 'declared', 'permits', 'claims' }) do redis.call('HLEN', base .. key) end
  for _, key in ipairs({ 'rates', 'blocked', 'scheduled' }) do redis.call('ZCARD', base .. key) end
  local due = redis.call('ZCOUNT', base .. 'tokens_due', '-inf', string.format('%d', now))
  return due + redis.call('EXISTS', base .. 'reopened') > 0
end

--- Whether others may have to learn of a time when jobs are taken: jobs wait for rates.
local function limits_rearms(base)
  return redis.call('ZRANGEBYLEX', base .. 'blocked', '[@', '(A', 'LIMIT', '0', '1')[1] ~= nil
end

--- Where ready jobs stand beside the lists.
local function limits_heads(base)
  return { base .. 'heads', lists = true }
end

--- The one of these in which a ready job stands; nil: in none.
local function limits_stands(base, job)
  return redis.call('ZSCORE', base .. 'heads', schedule_member(job, job.id)) and base .. 'heads'
end

local function limits_places(_, found)
  for _, key in ipairs({ 'limits', 'declared', 'permits', 'claims' }) do found[#found + 1] = { key, 'hash' } end
  for _, key in ipairs({ 'heads', 'blocked', 'rates', 'tokens_due' }) do found[#found + 1] = { key, 'zset' } end
  found[#found + 1] = { 'reopened', 'set' }
  return found
end
