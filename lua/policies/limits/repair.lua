--- @include "job/value"
--- @include "schedule/member"
--- @hooks delayed

--- Jobs that one repair looks for among those that consumers hold.
local LIMITS_LOOKED_FOR = 500

--- Set a limit right, whatever was there: permits are those of jobs that are ready or held (`held`: a function that says
--- who holds an id), and so many of them are out as jobs have. What is no job of it leaves the first 500 that wait. Then
--- what it allows is offered. Answers how much was changed.
local function limits_repair(base, queue, limit, held)
  local key, changed, out, room, cursor = base .. 'group:' .. limit, 0, 0, LIMITS_LOOKED_FOR, '0'
  repeat
    local page = redis.call('HSCAN', base .. 'claims', cursor, 'COUNT', '500')
    cursor = page[1]
    for i = 1, #page[2], 2 do
      local id, said = page[2][i], page[2][i + 1]
      local its
      for name, sign, count in limits_claimed(said) do
        if name == limit then its = sign == '!' and 0 or tonumber(count) or 1 end
      end
      if its then
        local value = redis.call('HGET', base .. 'jobs', id)
        local job = value and string.byte(value) ~= 33 and value_parse(value)
        local there = job and not job.damaged and redis.call('ZSCORE', base .. 'heads', schedule_member(job, id))
        if not there and room > 0 then
          room = room - 1
          there = held(id)
        elseif not there then
          there = true
        end
        if there then
          out = out + its
        else
          changed = changed + redis.call('HDEL', base .. 'claims', id)
        end
      end
    end
  until cursor == '0'
  if tonumber(redis.call('HGET', base .. 'permits', limit) or 0) ~= out then
    changed = changed + 1
    if out > 0 then
      redis.call('HSET', base .. 'permits', limit, out)
    else
      redis.call('HDEL', base .. 'permits', limit)
    end
  end
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
  end
  return changed
end
