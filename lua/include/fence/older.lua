--- @include "job/value"
--- @include "order/levels"
--- @include "order/score"
--- @include "schedule/member"
--- @hooks heads
--- @hooks turn
--- @include "consumer/most"

--- Whether a job that came before a fence is still to be waited for: it is ready, blocked or held. One that was delayed
--- has left the order of its queue, and so has one that waits to be tried again, unless it has the turn of its group.
--- What is found is noted: the next look asks for that job alone, so that a long backlog costs no more than a short one.

--- Of each place so many are looked at in one step; scheduled jobs, where groups may have them.
local FENCE_LOOK, FENCE_SCHEDULED = 100, 2000

--- Whether this job is one to be waited for.
local function fence_older_holds(base, id, position)
  local value = redis.call('HGET', base .. 'jobs', id)
  if not value or string.byte(value) == 33 or redis.call('ZSCORE', base .. 'dead', id) then return false end
  local job = value_parse(value)
  if job.position > position then return false end
  if not redis.call('ZSCORE', base .. 'scheduled', schedule_member(job, id)) then return true end
  local turn = false
  --- @if turn
  local group = job.tags and string.match(job.tags, '|g([^|]*)')
  if group then
    --- @each turn = turn(base, group)
  end
  --- @end
  return turn == id
end

--- Of ids the first one that is to be waited for; `seen`: whether one is there at all, and no mark.
local function fence_older_among(base, ids, position)
  local seen = false
  for first = 1, #ids, 500 do
    local values = redis.call('HMGET', base .. 'jobs', unpack(ids, first, math.min(first + 499, #ids)))
    for i, value in ipairs(values) do
      if value and string.byte(value) ~= 33 then
        seen = true
        local at = tonumber(string.match(value, '^%d+'))
        if not at or at <= position then return ids[first + i - 1], true end
      end
    end
  end
  return nil, seen
end

--- Such a job in a list, whose first one that is no mark is the oldest; `true` where only marks were seen.
local function fence_older_in_list(base, key, position)
  local ids = redis.call('LRANGE', key, '0', FENCE_LOOK - 1)
  local found, seen = fence_older_among(base, ids, position)
  return found or #ids == FENCE_LOOK and not seen
end

--- Such a job in a set of ready ones; `true` where too many were looked at to say.
local function fence_older_in_set(key, position)
  for level = 0, 9 do
    local least = (9 - level) * SCORE_LEVEL
    local range = { string.format('%d', least + SCORE_READY), string.format('%d', least + SCORE_READY + position) }
    local ready = redis.call('ZRANGEBYSCORE', key, range[1], range[2], 'LIMIT', '0', '1')
    if ready[1] then return string.sub(ready[1], MEMBER_PREFIX + 1) end
    local due = redis.call('ZRANGEBYSCORE', key, string.format('%d', least),
      '(' .. range[1], 'LIMIT', '0', string.format('%d', FENCE_LOOK))
    for _, member in ipairs(due) do
      if tonumber(string.sub(member, 3, MEMBER_PREFIX)) <= position then return string.sub(member, MEMBER_PREFIX + 1) end
    end
    if #due == FENCE_LOOK then return true end
  end
  return false
end

--- Such a job among the scheduled ones: in a queue with groups one of them may have a turn. `true`: the next step looks
--- on from there. None comes there meanwhile that is older than the fence, unless it was found elsewhere before.
local function fence_older_scheduled(base, position)
  local key, meta = base .. 'scheduled', base .. 'meta'
  local due, member = string.match(redis.call('HGET', meta, 'fence_at') or '', '^(%d+) (.*)$')
  local from = 0
  if due then
    local rank = redis.call('ZRANK', key, member)
    from = rank and rank + 1 or redis.call('ZCOUNT', key, '-inf', '(' .. due)
  end
  local some = redis.call('ZRANGE', key, from, from + FENCE_SCHEDULED - 1, 'WITHSCORES')
  for i = 1, #some, 2 do
    local id = string.sub(some[i], MEMBER_PREFIX + 1)
    if tonumber(string.sub(some[i], 3, MEMBER_PREFIX)) <= position and fence_older_holds(base, id, position) then return id end
  end
  if #some < 2 * FENCE_SCHEDULED then return false end
  redis.call('HSET', meta, 'fence_at', string.format('%d', some[#some]) .. ' ' .. some[#some - 1])
  return true
end

--- `fence`: the position of the last job before it, as text. One that is none, nobody passes until the shard is informed
--- anew.
local function fence_older(base, fence)
  local meta, position = base .. 'meta', tonumber(fence)
  if not position then return true end
  local by = redis.call('HGET', meta, 'fence_by')
  if by and fence_older_holds(base, by, position) then return true end
  local found = false
  for _, level in ipairs(levels_list(redis.call('HGET', meta, 'levels') or '')) do
    found = found or fence_older_in_list(base, base .. 'ready:' .. level, position)
  end
  --- @if heads
  local heads
  --- @each heads = heads(base)
  for _, key in ipairs(heads) do found = found or fence_older_in_set(key, position) end
  --- @end
  if not found then
    for _, name in ipairs(redis.call('ZRANGE', base .. 'consumers', '0', CONSUMERS_LAST)) do
      found = found or fence_older_among(base, redis.call('LRANGE', base .. 'held:' .. name, '0', '-1'), position)
    end
  end
  if found then
    -- what is found here may go to the schedule: that is looked at from the beginning then
    redis.call('HDEL', meta, 'fence_at')
  else
    --- @if turn
    found = fence_older_scheduled(base, position)
    --- @end
  end
  if type(found) == 'string' then redis.call('HSET', meta, 'fence_by', found) else redis.call('HDEL', meta, 'fence_by') end
  return found and true or false
end
