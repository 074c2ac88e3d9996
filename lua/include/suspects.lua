--- @include "count"

--- Whom the end of a lease charges (X-24): the jobs that are known to have been running, as their supervisor noted it
--- now and then; where nothing is known of any, the oldest one that the worker had heard of, and no other.

--- Of a job that was handed over and whose message is still there nobody has read anything: ids -> true.
local function suspects_unread(base, consumer)
  local unread = {}
  for _, word in ipairs(redis.call('LRANGE', base .. 'wake:' .. consumer, 0, 999)) do
    if string.byte(word) == 74 then
      local size = struct.unpack('>I4', string.sub(word, 2, 5))
      unread[string.sub(word, 6, 5 + size)] = true
    end
  end
  return unread
end

--- The charges (id -> charge, see `give_back`) of one slice of these hands: `jobs` as read, from the oldest on. `left`:
--- how many others the hands hold, all older. `cause`: a table. What was charged is counted in the consumer's hash.
local function suspects_of(base, consumer, jobs, left, cause)
  local row, charged, count = base .. 'consumer:' .. consumer, {}, 0
  local before = tonumber(redis.call('HGET', row, 'charged')) or 0
  local ids = {}
  for i, job in ipairs(jobs) do ids[i] = job.id end
  local notes = #ids > 0 and redis.call('HMGET', base .. 'running:' .. consumer, unpack(ids)) or {}
  for i, job in ipairs(jobs) do
    local deliveries, acquired, started = string.match(notes[i] or '', '^(%d+),(%d+),(%d+)$')
    if deliveries and tonumber(deliveries) == job.deliveries then
      count = count + 1
      charged[job.id] = { cause = cause, turn = before + count, acquired = tonumber(acquired), started = tonumber(started) }
    end
  end
  if left == 0 and before + count == 0 then
    local unread = suspects_unread(base, consumer)
    for _, job in ipairs(jobs) do
      if not unread[job.id] then
        charged[job.id] = { cause = cause, turn = 1 }
        break
      end
    end
  end
  return charged, count
end

--- Remember, until the last slice, that somebody was charged.
local function suspects_note(base, consumer, count)
  if count > 0 then count_up(base .. 'consumer:' .. consumer, 'charged', count) end
end
