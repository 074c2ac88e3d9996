--- @include "queue/sound_type"
--- @include "queue/sound_consumers"
--- @include "schedule/promote"

--- Whether what is due can be promoted. What a pull takes itself, and where that leaves its consumer, is undone where
--- that fails; what it promoted is not.

--- @if deal
--- The last index of those that one pull may take of a set.
local SOUND_DEALT = '500'
--- @end

--- The levels in use once these members of the schedule are promoted ("9,4"; in any order).
local function sound_levels(levels, due)
  local seen = {}
  for level in string.gmatch(levels, '%d+') do seen[tonumber(level)] = true end
  for _, member in ipairs(due) do
    local level = promote_level(member)
    if not seen[level] then levels = levels .. ',' .. level end
    seen[level] = true
  end
  return levels
end

--- Of what a pull meets that promotes, where all of it goes to the head.
local function sound_promotion(base, levels, name)
  local fault = sound_type(base, 'jobs', 'hash') or sound_type(base, 'wake:' .. name, 'list')
    or sound_type(base, 'interested', 'zset') or sound_type(base, 'notified', 'zset')
    or sound_type(base, 'not_interested', 'set') or sound_type(base, 'browsers', 'set')
  for level in string.gmatch(levels, '%d+') do
    fault = fault or sound_type(base, 'due:' .. level, 'list') or sound_type(base, 'ready:' .. level, 'list')
  end
  if fault then return fault end
  local names = redis.call('SMEMBERS', base .. 'browsers')
  for _, waits in ipairs(redis.call('ZRANGE', base .. 'interested', '0', '1')) do names[#names + 1] = waits end
  names[#names + 1] = redis.call('ZREVRANGE', base .. 'interested', '0', '0')[1]
  --- @each waiters(base, names)
  return sound_consumers(base, names)
end

--- An error reply if one of the keys is of another type that a step meets which promotes `due`. `name`: the consumer
--- that pulls, "" if none does.
local function sound_due(base, queue, name, due)
  local levels, fault = sound_levels(queue.levels, due), nil
  local all = redis.call('EXISTS', base .. 'returns_to', base .. 'byte_waiters') > 0
  --- @if eligible
  -- some may not become ready, but end
  all = true
  --- @end
  --- @if overdue
  -- what is overdue then is seen to behind this, and may meet all keys
  all = true
  --- @end
  --- @if displace
  -- others may end
  all = true
  --- @end
  --- @if meets
  --- @include "queue/sound_jobs"
  local ids = {}
  for i, member in ipairs(due) do ids[i] = string.sub(member, MEMBER_PREFIX + 1) end
  --- @if deal
  -- and what is behind those that may be dealt then
  local heads
  --- @each heads = heads(base)
  for _, key in ipairs(heads) do
    for _, member in ipairs(redis.call('ZRANGE', key, '0', SOUND_DEALT)) do
      ids[#ids + 1] = string.sub(member, MEMBER_PREFIX + 1)
    end
  end
  --- @end
  fault = sound_jobs(base, redis.call('HMGET', base .. 'jobs', unpack(ids)))
  if fault then return fault end
  --- @end
  if all then
    --- @include "queue/sound"
    return sound_fault(base, levels, { name })
  end
  return sound_promotion(base, levels, name)
end
