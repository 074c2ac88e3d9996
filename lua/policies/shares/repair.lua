--- @include "job/value"
--- @include "order/score"
--- @include "schedule/member"
--- @hooks strand

--- Strands whose jobs one repair counts.
local SHARES_COUNTED = 10000

--- How many stand behind the heads of the strands of a level; nil where there are too many to look at.
local function shares_count(base, level)
  local total = 0
  local strands = redis.call('ZRANGEBYLEX', base .. 'blocked', '[' .. level .. '.', '(' .. level .. '/', 'LIMIT', '0',
    SHARES_COUNTED)
  if #strands == SHARES_COUNTED then return nil end
  for _, strand in ipairs(strands) do total = total + redis.call('ZCARD', base .. 'group:' .. strand) end
  return total
end

--- Set a strand right, whatever was there: its head is a job of it that stands among the heads, else the first of those
--- behind, of which what is no job of it leaves, of the first 500. What is said to stand behind heads of its level is
--- counted. Answers how much was changed; nil: this is no strand.
local function shares_repair(base, queue, strand)
  local level = string.match(strand, '^(%d)%.')
  if not level then return nil end
  local key, changed = base .. 'group:' .. strand, 0
  --- A job of this strand, by its member.
  local function mine(member)
    local id = string.sub(member, MEMBER_PREFIX + 1)
    local value = redis.call('HGET', base .. 'jobs', id)
    local job = value and string.byte(value) ~= 33 and value_parse(value)
    if not job or job.damaged or not shares_takes(job) then return nil end
    if shares_strand_of(job.level, shares_name(job.tags)) ~= strand or schedule_member(job, id) ~= member then return nil end
    job.id = id
    return job
  end
  for _, member in ipairs(redis.call('ZRANGE', key, '0', '499')) do
    local job = mine(member)
    if not job or redis.call('ZSCORE', base .. 'heads', member) then
      changed = changed + redis.call('ZREM', key, member)
    elseif tonumber(redis.call('ZSCORE', key, member)) ~= shares_entry(job).at then
      redis.call('ZADD', key, string.format('%d', shares_entry(job).at), member)
      changed = changed + 1
    end
  end
  local said = redis.call('HGET', base .. 'strands', strand)
  local member = said and string.sub(said, SHARES_DIGITS + 1)
  local job = member and mine(member)
  local stood = job and redis.call('ZSCORE', base .. 'heads', member)
  local score = stood and math.floor(tonumber(stood) / SCORE_LEVEL) == 9 - tonumber(level) and stood
  if said and not score then
    if member ~= '' then redis.call('ZREM', base .. 'heads', member) end
    redis.call('HDEL', base .. 'strands', strand)
    if stood then
      redis.call('ZADD', key, string.format('%d', shares_entry(job).at), member)
      shares_line(base, tonumber(level), 1)
    end
    changed = changed + 1
  elseif said and said ~= shares_said(shares_entry(job).at, member) then
    redis.call('HSET', base .. 'strands', strand, shares_said(shares_entry(job).at, member))
    changed = changed + 1
  end
  if redis.call('EXISTS', key) == 1 then
    changed = changed + redis.call('ZADD', base .. 'blocked', '0', strand)
    local first = redis.call('ZRANGE', key, '0', '0', 'WITHSCORES')
    if not score then
      local tag = shares_starts(base, tonumber(level), { strand })[strand]
      shares_next(base, tonumber(level), strand, shares_score(tonumber(level), tag))
      changed, queue.opened = changed + 1, (queue.opened or 0) + 1
    elseif tonumber(first[2]) < shares_entry(job).at then
      -- an earlier one stands behind it
      redis.call('ZREM', base .. 'heads', member)
      redis.call('ZADD', key, string.format('%d', shares_entry(job).at), member)
      shares_line(base, tonumber(level), 1)
      shares_next(base, tonumber(level), strand, score)
      changed = changed + 1
    end
  else
    changed = changed + redis.call('ZREM', base .. 'blocked', strand)
  end
  local total = shares_count(base, level)
  if total and total ~= (tonumber(redis.call('HGET', base .. 'lined', level)) or 0) then
    redis.call('HSET', base .. 'lined', level, total)
    changed = changed + 1
  end
  return changed
end
