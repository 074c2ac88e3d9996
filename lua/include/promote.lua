--- @include "value"
--- @include "levels"
--- @include "place"
--- @include "consumers"

--- Scheduled jobs that are due become ready at the head of their level, in due order, equal times in the order of
--- their enqueue. Two kinds go elsewhere, `seated` knows them: parked jobs back to the places they kept, and retries
--- that asked for the tail behind everything. A due list per level stands before its ready list, so that promotion
--- never walks a backlog.
local PROMOTE_MAX = 256

--- Promote up to PROMOTE_MAX due jobs; returns how many, and the levels in use.
local function promote_due(base, now, levels)
  local meta, jobs_key = base .. 'meta', base .. 'jobs'
  local due = redis.call('ZRANGEBYSCORE', base .. 'scheduled', '-inf', now, 'WITHSCORES', 'LIMIT', 0, PROMOTE_MAX)
  if #due == 0 then return 0, levels end
  local members, ids = {}, {}
  for i = 1, #due, 2 do
    members[#members + 1] = due[i]
    ids[#ids + 1] = string.sub(due[i], 15)
  end
  local values = redis.call('HMGET', jobs_key, unpack(ids))
  redis.call('ZREM', base .. 'scheduled', unpack(members))
  local first = redis.call('HINCRBY', meta, 'promoted', #ids) - #ids
  local seated = redis.call('EXISTS', base .. 'seated') == 1 and redis.call('HMGET', base .. 'seated', unpack(ids)) or {}
  local stored, lists, used, aside, count = {}, {}, {}, {}, 0
  for i, id in ipairs(ids) do
    if values[i] then count = count + 1 end
    if values[i] and seated[i] then
      local job = value_parse(values[i])
      job.id = id
      redis.call('HDEL', base .. 'seated', id)
      if seated[i] == 'tail' then
        job.position = redis.call('HINCRBY', meta, 'seq', 1)
        redis.call('HINCRBY', meta, 'tailed', 1)
        stored[#stored + 1] = id
        stored[#stored + 1] = value_header(job) .. job.envelope
        redis.call('RPUSH', base .. 'ready:' .. job.level, id)
      else
        redis.call('HDEL', base .. 'parked', id)
        aside[#aside + 1] = job
      end
    elseif values[i] then
      -- its header holds the due time already, unless somebody asked for the job to be ready sooner: then only the
      -- position is new, and the rest need not be taken apart
      local rest, level, its_due = string.match(values[i], '^%-?%d+(,%d+,(%d+),%d+,%d+,%d+,(%d+);.*)$')
      local position = HEAD + first + i
      if its_due == due[2 * i] then
        level = tonumber(level)
        values[i] = string.format('%d', position) .. rest
      else
        local job = value_parse(values[i])
        job.position, job.due, level = position, tonumber(due[2 * i]), job.level
        values[i] = value_header(job) .. job.envelope
      end
      stored[#stored + 1] = id
      stored[#stored + 1] = values[i]
      local waiting = lists[level]
      if not waiting then
        waiting = {}
        lists[level] = waiting
        used[level] = true
      end
      waiting[#waiting + 1] = id
    end
  end
  if #stored > 0 then redis.call('HSET', jobs_key, unpack(stored)) end
  for level, waiting in pairs(lists) do redis.call('RPUSH', base .. 'due:' .. level, unpack(waiting)) end
  -- parked jobs go back to the places they kept
  if #aside > 0 then place_back(base, aside) end
  consumer_tell_browsers(base)
  return count, levels_use(meta, levels, used)
end
