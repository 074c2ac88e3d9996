--- @include "job/value"
--- @include "schedule/member"
--- @hooks delayed

--- Jobs whose permits one repair looks at.
local LIMITS_LOOKED_FOR = 500

--- Whether a job is ready or held, and may have permits. `held`: a function that says who holds an id.
local function limits_entitled(base, id, held)
  local value = redis.call('HGET', base .. 'jobs', id)
  local job = value and string.byte(value) ~= 33 and value_parse(value)
  if job and not job.damaged then
    job.id = id
    local spots = {}
    --- @each spots = found(base, job, spots)
    for i = 1, #spots, 2 do
      -- behind the first one of a strand, whose name has a dot, a job is ready too
      if spots[i] == 'heads' or string.find(spots[i], '.', 1, true) then return true end
    end
  end
  return held(id)
end

--- Set right how many permits of a limit are out, by what was seen at one moment: each step changes that number and what
--- jobs have alike, so by how much they differ stays as it is while the queue goes on. Not where another has done so since.
local function limits_correct(base, limit, seen)
  local last = redis.call('HGET', base .. 'meta', 'corrected_by') or ''
  if seen.fewer == 0 or last ~= seen.last and last ~= seen.by then return 0 end
  local said = redis.call('HGET', base .. 'permits', limit) or '0'
  local out = math.max(0, (string.find(said, '^%d+$') and tonumber(said) or 0) + seen.fewer)
  redis.call('HSET', base .. 'meta', 'corrected_by', seen.by)
  if out > 0 then
    redis.call('HSET', base .. 'permits', limit, string.format('%d', out))
  else
    redis.call('HDEL', base .. 'permits', limit)
  end
  return 1
end

--- Set a limit right, by what was `seen`: {fewer=, last=, by=, ids=}. So many permits fewer are said to be out as jobs
--- have; of these jobs those have no permits that are neither ready nor held. What is no job of the limit leaves the first
--- 500 that wait. Then what it allows is offered. Answers how much was changed.
local function limits_repair(base, queue, limit, held, seen)
  local key, changed, claims = base .. 'group:' .. limit, limits_correct(base, limit, seen), {}
  for i = 1, math.min(#seen.ids, LIMITS_LOOKED_FOR) do
    local claim = redis.call('HGET', base .. 'claims', seen.ids[i])
    if claim and not limits_entitled(base, seen.ids[i], held) then
      changed = changed + redis.call('HDEL', base .. 'claims', seen.ids[i])
      claims[#claims + 1] = claim
    end
  end
  local freed = limits_return(base, claims)
  if freed[1] then limits_open(base, queue, freed) end
  for _, member in ipairs(redis.call('ZRANGE', key, '0', '499')) do
    local id = string.sub(member, MEMBER_PREFIX + 1)
    local value = redis.call('HGET', base .. 'jobs', id)
    local job = value and string.byte(value) ~= 33 and value_parse(value)
    local mine = job and table.concat(limits_names(limits_of(job.tags) or {}, {}), ' ') or ''
    if not string.find(' ' .. mine .. ' ', ' ' .. limit .. ' ', 1, true) or schedule_member(job, id) ~= member then
      changed = changed + redis.call('ZREM', key, member)
    end
  end
  if redis.call('EXISTS', key) == 1 then
    changed = changed + redis.call('ZADD', base .. 'blocked', '0', limit)
    local opened = queue.opened or 0
    LIMITS.out[limit] = nil
    limits_open(base, queue, { limit })
    changed = changed + (queue.opened or 0) - opened
  else
    changed = changed + redis.call('ZREM', base .. 'blocked', limit)
    LIMITS.out[limit] = nil
    limits_read(base, { limit })
    limits_forget(base, { limit })
  end
  return changed
end
