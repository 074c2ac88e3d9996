--- Jobs are given sort keys. In a level those without one go first; the others go by key, and those of equal keys by position
--- (Q-14). What comes back stands where its key says, and so does what was due.
--- HOOKS: admit, shelf, member, beside, fixed, unblock, heads, stands, found, places, meets, options, ripen
--- META: descending
--- JOB: tags (s: the key, hexadecimal)
--- KEYS: heads
--- STORE: list
--- ORDER: 68
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: groups, hold, refusals, flows, limits, front, shard, shares
--- @include "order/any"
--- @include "order/member"
--- @include "order/score"

--- `heads`: ready jobs with keys, all of a level with the same score. Those without a key are in the lists.

--- Digits of a key that is sent at the most: what it is made of has 128 bytes and its type.
local SORTED_MOST = 258

--- Where the greatest key goes first, keys are noted so that their bytes stand in that order: each digit as what it lacks
--- to f, and z at the end, since of two keys that begin alike the longer one goes first.
local SORTED_INVERSE = {}
for digit = 0, 15 do SORTED_INVERSE[string.format('%x', digit)] = string.format('%x', 15 - digit) end

--- The key of a job by its tags, as it is noted; nil where it has none.
local function sorted_key(job)
  return job.tags and string.match(job.tags, '|s([^|]*)')
end

--- `run`: of an enqueue.
local function sorted_admit(queue, run)
  local key = string.match(run.more, '|s([^|~]*)')
  if not key then return end
  if key == '' or #key > SORTED_MOST or string.find(key, '[^0-9a-f]') then
    return redis.error_reply('BADARGS enqueue: a sort key that is empty, too long or not hexadecimal')
  end
  if queue.descending == nil then
    queue.descending = redis.call('HGET', queue.base .. 'meta', 'descending') == '1'
  end
  if queue.descending then key = string.gsub(key, '.', SORTED_INVERSE) .. 'z' end
  run.tags, run.placed = run.tags .. '|s' .. key, true
  run.more = string.gsub(run.more, '|s[^|~]*', '', 1)
end

--- The member of a job in the sorted set that it stands in; nil where it has no key.
local function sorted_member(job)
  local key = sorted_key(job)
  return key and 's' .. key .. '\0' .. string.format('%014d', job.position) .. job.id
end

--- These jobs ({id=, level=, position=, tags=, ...}) are to be ready: new, due, or back from a consumer. Those with a key
--- go to their places; the others are returned.
local function sorted_shelf(base, _, jobs)
  local open, rest = {}, {}
  for _, job in ipairs(jobs) do
    local member = sorted_member(job)
    if member then
      open[#open + 1] = score_behind(job.level)
      open[#open + 1] = member
    else
      rest[#rest + 1] = job
    end
  end
  if #open == 0 then return jobs end
  redis.call('ZADD', base .. 'heads', unpack(open))
  return rest
end

--- Whether nobody may choose its place.
local function sorted_fixed(job)
  return sorted_key(job) ~= nil or nil
end

--- The key of the sorted set that a ready job stands in.
local function sorted_stands(base, job)
  local member = sorted_member(job)
  return member and redis.call('ZSCORE', base .. 'heads', member) and base .. 'heads' or nil
end

--- A job that waits leaves: out of its place. Answers `ready`; nil where it does not stand here.
local function sorted_unblock(base, _, job)
  local member = sorted_member(job)
  return member and redis.call('ZREM', base .. 'heads', member) == 1 and 'ready' or nil
end

--- Where ready jobs stand beside the lists.
local function sorted_heads(base)
  return { base .. 'heads', lists = true }
end

--- The same where others stand by their labels: into `sets`.
local function sorted_beside(base, sets)
  sets[#sets + 1] = base .. 'heads'
end

--- Where this job is, for who checks: into `found` goes each place and 1.
local function sorted_found(base, job, found)
  if found[1] ~= 'heads' and sorted_stands(base, job) then
    found[#found + 1] = 'heads'
    found[#found + 1] = 1
  end
  return found
end

local function sorted_places(_, found)
  found[#found + 1] = { 'heads', 'zset' }
  return found
end

--- What a step that makes jobs with these values, or tags, ready may meet: into `found`.
local function sorted_meets(values, found)
  for _, value in ipairs(values) do
    if value and sorted_key({ tags = string.match(value, '^[%d,-]*([^;]*)') }) then return sorted_places(nil, found) end
  end
  return found
end

--- What may be configured, into `limits`. Keys are noted in one order.
local function sorted_options(base, limits, given)
  limits.descending = { 0, 1 }
  if given.descending and any_job(base)
    and (redis.call('HGET', base .. 'meta', 'descending') or '0') ~= given.descending then
    return redis.error_reply('CONFLICT sort cannot change while the queue has jobs: let them end, or purge them')
  end
end
