--- @include "queue/count"

--- Whom the end of a lease charges (X-24): the jobs that are known to have been running, as their supervisor noted it
--- now and then. Where nothing is known of any, the oldest one that the worker had heard of is suspected, and no other:
--- the first time that is noted with its errors and costs nothing; a job that was suspected before is charged.

--- Of a job that was delivered directly and whose message is still there nobody has read anything: ids -> true.
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

--- Whether this job was suspected before. A suspicion lasts as long as the job keeps its place: a dead letter that
--- lives again, and what was tried and went to the tail, have a new one, and no suspicion.
local function suspects_known(base, job)
  for line in string.gmatch(redis.call('HGET', base .. 'errors', job.id) or '', '[^\n]+') do
    if string.find(line, '"kind":"suspected"', 1, true) then
      local read, error_ = pcall(cjson.decode, line)
      if read and error_.kind == 'suspected' and error_.position == job.position then return true end
    end
  end
  return false
end

local function suspects_copy(cause)
  local own = {}
  for key, value in pairs(cause) do own[key] = value end
  return own
end

--- The charge of a job of which nobody knows whether it ran. `cause`: why the lease ended.
local function suspects_charge(base, job, cause)
  local own = suspects_copy(cause)
  own.position = job.position
  if not suspects_known(base, job) then
    own.kind = 'suspected'
    own.message = cause.message .. '; whether this job, the oldest that it held, had begun is not known: it is not charged'
    return { suspicion = own }
  end
  own.deaths = job.crashes + 2
  own.message = cause.message .. '; whether this job had begun is not known, but it was held by '
    .. string.format('%d', own.deaths) .. ' workers that died'
  return { cause = own, turn = 1 }
end

--- The charges (id -> charge, see `release_jobs`) of one slice of what a consumer held: `jobs` as read, from the oldest
--- on. `left`: how many others it still holds, all older. `cause`: a table. What was charged is counted in the
--- consumer's hash.
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
      local own = suspects_copy(cause)
      own.position = job.position
      charged[job.id] = { cause = own, turn = before + count, acquired = tonumber(acquired), started = tonumber(started) }
    end
  end
  if left == 0 and before + count == 0 then
    local unread = suspects_unread(base, consumer)
    for _, job in ipairs(jobs) do
      if not unread[job.id] then
        charged[job.id] = suspects_charge(base, job, cause)
        break
      end
    end
  end
  return charged, count
end

--- Remember, until the last slice, how many jobs were charged.
local function suspects_note(base, consumer, count)
  if count > 0 then count_up(base .. 'consumer:' .. consumer, 'charged', count) end
end
