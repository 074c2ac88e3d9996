--- @include "job/value"
--- @include "limit/tokens"
--- @include "order/score"
--- @include "queue/count"
--- @include "schedule/member"
--- @hooks delayed

--- Of the claims of jobs that come back those go that are paid for an attempt which is over: these jobs pay anew, behind
--- those that wait. Returns the limits that may have permits by that.
local function limits_unpaid(base, jobs, claims)
  local gone, said = {}, {}
  for i, job in ipairs(jobs) do
    for _, sign, attempt in limits_claimed(claims[i] or '') do
      if claims[i] and sign == '!' and tonumber(attempt) ~= (job.attempts or 0) then
        gone[#gone + 1] = job.id
        said[#said + 1] = claims[i]
        claims[i] = false
      end
    end
  end
  if #gone == 0 then return gone end
  redis.call('HDEL', base .. 'claims', unpack(gone))
  return limits_return(base, said)
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
  local has, open, ready, claims = redis.call('HMGET', base .. 'claims', unpack(ids)), {}, {}, {}
  local freed = limits_unpaid(base, mine, has)
  limits_declare(mine, queue.now)
  for limit in pairs(LIMITS.moved) do
    if LIMITS.waits[limit] then freed[#freed + 1] = limit end
  end
  LIMITS.moved = {}
  local places, blocked, stored, waiting = {}, {}, {}, 0
  for i, job in ipairs(mine) do
    local member = schedule_member(job, job.id)
    local refusing = not has[i] and limits_refusing(job.limits, queue.now, true)
    if refusing then
      local its = places[refusing]
      if not its then
        its = {}
        places[refusing] = its
        blocked[#blocked + 1] = '0'
        blocked[#blocked + 1] = refusing
        LIMITS.waits[refusing] = true
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
      ready[#ready + 1] = job
      open[#open + 1] = job.due > 0 and string.format('%d', score_of(job.level, job.due)) or score_text(member)
      open[#open + 1] = member
      if not has[i] then
        claims[#claims + 1] = job.id
        claims[#claims + 1] = limits_take(job.limits, queue.now)
      end
    end
  end
  if #claims > 0 then redis.call('HSET', base .. 'claims', unpack(claims)) end
  limits_write(base)
  --- @if strand
  open = {}
  --- @each strand(base, ready)
  --- @end
  if #open > 0 then redis.call('ZADD', base .. 'heads', unpack(open)) end
  if waiting > 0 then
    for limit, its in pairs(places) do redis.call('ZADD', base .. 'group:' .. limit, unpack(its)) end
    redis.call('ZADD', base .. 'blocked', unpack(blocked))
    count_up(base .. 'meta', 'blocked', waiting)
    queue.kept_back = (queue.kept_back or 0) + waiting
  end
  if #stored > 0 then redis.call('HSET', base .. 'jobs', unpack(stored)) end
  for limit, its in pairs(places) do
    if limits_is_rate(limit) and redis.call('ZRANGE', base .. 'group:' .. limit, '0', '0')[1] == its[2] then
      limits_arm(base, queue, limit)
    end
  end
  tokens_write(base, queue.now)
  if #freed > 0 then
    local opened = queue.opened
    queue.opened = 0
    limits_open(base, queue, freed)
    queue.kept_back, queue.opened = (queue.kept_back or 0) - queue.opened, opened
  end
  return rest
end
