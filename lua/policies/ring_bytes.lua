--- A ring in bytes: at most so many are ready, one more displaces the oldest of the lowest level. A job that has more
--- bytes than the ring is refused, and displaces nothing (Q-67).
--- HOOKS: defaults, weigh, weight, fit, ripe, taken, left, pass, overdue, configured, recount, options, places, meets
--- META: ring_bytes, waiting_bytes, weighed, recount_at, recounted
--- JOB: none
--- KEYS: sizes
--- STORE: list
--- ORDER: 29
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: max_bytes
--- @include "size/note"
--- @include "size/over"
--- @include "size/pass"
--- @include "size/recount"
--- @include "size/build"
--- @include "schedule/member"

--- Due time in a value's header; other headers are shorter.
local RING_BYTES_DUE = '^%d+,%-?%d+,%d+,%d+,%d+,%d+,(%d+)[,|;]'

--- All jobs are laid out one by one, none goes the fast way.
local function ring_bytes_defaults()
  return true
end

--- Of these jobs, {id, value, ...}, those that are ready now count. `where`: ready, scheduled, held, of all of them; nil:
--- their values say whether they are due.
local function ring_bytes_weigh(base, now, stored, where)
  if where == 'held' or where == 'scheduled' then return end
  local ready = {}
  for i = 1, #stored, 2 do
    local due = where == nil and string.match(stored[i + 1], RING_BYTES_DUE)
    if not due or tonumber(due) <= now then
      ready[#ready + 1] = stored[i]
      ready[#ready + 1] = stored[i + 1]
    end
  end
  size_note(base, ready)
end

--- Into `look`: the limit in bytes, where there is one, and what is there.
local function ring_bytes_weight(base, look)
  local row = redis.call('HMGET', base .. 'meta', 'ring_bytes', 'waiting_bytes')
  local most = tonumber(row[1]) or 0
  if most > 0 then look.most_bytes, look.bytes = most, tonumber(row[2]) or 0 end
end

--- An error reply where one of the jobs never fits. Runs that end in ">!" are let in: they follow jobs that are settled
--- with them, and are displaced at once.
local function ring_bytes_fit(base, plan)
  local look = {}
  ring_bytes_weight(base, look)
  if not look.most_bytes or plan.largest <= look.most_bytes or string.find(plan.runs, '>!', -2, true) then return nil end
  return redis.error_reply('FULL ' .. string.format('0 0 0 0 1 %d %d 0 %d', look.most_bytes, look.bytes, plan.largest))
end

--- Scheduled jobs are ready now.
local function ring_bytes_ripe(base, members)
  local ids, stored = {}, {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, MEMBER_PREFIX + 1) end
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
    if value and string.byte(value) ~= 33 then
      stored[#stored + 1] = ids[i]
      stored[#stored + 1] = value
    end
  end
  size_note(base, stored)
end

local function ring_bytes_taken(base, ids)
  size_over(base, ids)
end

local function ring_bytes_left(base, ids)
  size_over(base, ids)
end

local function ring_bytes_pass(base, _, jobs)
  size_pass(base, jobs)
end

--- Nothing is ever late; a key of another type is met here, before anything is written.
local function ring_bytes_overdue(base)
  redis.call('HLEN', base .. 'sizes')
end

local function ring_bytes_configured(base)
  size_build(base, true, false)
end

local function ring_bytes_recount(base, _, changed)
  return (changed or 0) + size_recount(base)
end

local function ring_bytes_options(base, limits)
  limits.ring_bytes = { 0, 1000000000000000 }
  return size_build_fault(base, 'ring_bytes')
end

local function ring_bytes_places(_, found)
  found[#found + 1] = { 'sizes', 'hash' }
  return found
end

local function ring_bytes_meets(_, found)
  return ring_bytes_places(nil, found)
end
