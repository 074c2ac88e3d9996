--- A bounded queue with a greatest number of bytes that wait, beside that of jobs or instead of it: of each job that counts
--- the size of its envelope is noted, and the sum is kept with the notes (Q-67, X-16).
--- HOOKS: defaults, weigh, weight, taken, left, done, pass, overdue, configured, recount, options, places, meets
--- META: max_bytes, waiting_bytes, weighed, recount_at, recounted
--- JOB: none
--- KEYS: sizes
--- STORE: list
--- ORDER: 94
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: ring, ring_bytes
--- @include "order/any"
--- @include "size/note"
--- @include "size/over"
--- @include "size/pass"
--- @include "size/sum"
--- @include "size/recount"
--- @include "size/build"
--- @include "room/held_counts"

--- All jobs are laid out one by one, none goes the fast way.
local function max_bytes_defaults()
  return true
end

--- These jobs, {id, value, ...}, are stored now. `where`: held, where they were delivered in the same step.
local function max_bytes_weigh(base, _, stored, where)
  if where ~= 'held' or room_held_counts(base) then size_note(base, stored) end
end

--- Into `look`: the limit in bytes, where there is one, and what is there; of an enqueue also what leaves for it.
local function max_bytes_weight(base, look, plan)
  local row = redis.call('HMGET', base .. 'meta', 'max_bytes', 'waiting_bytes')
  local most = tonumber(row[1]) or 0
  if most == 0 then return end
  look.most_bytes, look.bytes = most, tonumber(row[2]) or 0
  local ids = {}
  for i, victim in ipairs(plan and plan.victims or {}) do ids[i] = victim.id end
  look.gone_bytes = size_sum(base, ids)
end

local function max_bytes_taken(base, ids)
  if not room_held_counts(base) then size_over(base, ids) end
end

local function max_bytes_left(base, ids)
  size_over(base, ids)
end

local function max_bytes_done(base, _, gone)
  size_over(base, gone)
end

local function max_bytes_pass(base, _, jobs)
  size_pass(base, jobs)
end

--- Nothing is ever late; a key of another type is met here, before anything is written.
local function max_bytes_overdue(base)
  redis.call('HLEN', base .. 'sizes')
end

local function max_bytes_configured(base)
  size_build(base, false, room_held_counts(base))
end

local function max_bytes_recount(base, _, changed)
  return (changed or 0) + size_recount(base)
end

local function max_bytes_options(base, limits, given)
  limits.max_bytes = { 0, 1000000000000000 }
  if given.count_held and (given.count_held == '1') ~= room_held_counts(base)
    and redis.call('HGET', base .. 'meta', 'weighed') == '1' and any_job(base) then
    return redis.error_reply('CONFLICT count_held cannot change in a queue with a limit in bytes while it has jobs: let them '
      .. 'end, or purge them')
  end
  return size_build_fault(base, 'max_bytes')
end

local function max_bytes_places(_, found)
  found[#found + 1] = { 'sizes', 'hash' }
  return found
end

local function max_bytes_meets(_, found)
  return max_bytes_places(nil, found)
end
