--- Acquire jobs for a consumer, or after a reconnect tell it what it holds.
--- KEYS: meta, guard
--- ARGV: consumer, term, jobs, bytes, recall
---   jobs, bytes: the consumer's whole window (bytes 0: no limit)
---   recall: a place in the consumer's list of held jobs, from 0: the reply also holds, first, the jobs from there on
---   (H-18); a
---     page of 3000 jobs with more behind it is all of the reply, and nothing is acquired. "" = no recall
--- REPLY: {now, state, timer, {}, behind, id, value, ...}
---   timer: ms until the next due job where this consumer watches it, or -1
---   behind: the id that this consumer held last before this call, "" where it held none (X-25)
--- ERRORS: BADARGS | GONE | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "consumer/open"
--- @include "consumer/window"
--- @include "pull/pull"

local meta = KEYS[1]
local consumer = ARGV[1]
local term = ARGV[2]
local jobs = ARGV[3]
local bytes = ARGV[4]
local recall = ARGV[5]

-- with PULL_MAX more this is what Lua's stack lets one reply hold
local RECALL_MAX = 3000

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local me
me, failure = consumer_open(base, consumer, term)
if not me then return failure end
if me.browses then return redis.error_reply('BADARGS pull: a browser acquires nothing') end
jobs, bytes = tonumber(jobs), tonumber(bytes)
if not jobs or not bytes or jobs < 0 or bytes < 0 then return redis.error_reply('BADARGS pull: a window is two numbers') end

local held, reply, from = base .. 'held:' .. consumer, {}, nil
if recall ~= '' then
  from = tonumber(recall)
  if not from or from < 0 or from > 2^31 or from ~= math.floor(from) then
    return redis.error_reply('BADARGS pull: a recall begins at a place in the list of held jobs')
  end
end
local behind = redis.call('LINDEX', held, -1) or ''
if from then
  local ids = redis.call('LRANGE', held, from, from + RECALL_MAX - 1)
  local values = #ids > 0 and redis.call('HMGET', base .. 'jobs', unpack(ids)) or {}
  for i, id in ipairs(ids) do
    reply[#reply + 1] = id
    reply[#reply + 1] = values[i] or ''
  end
  if #ids == RECALL_MAX and ids[RECALL_MAX] ~= behind then
    return { queue.now, me.state, -1, {}, behind, unpack(reply) }
  end
  --- @include "queue/sound"
  failure = sound_fault(base, queue.levels, { consumer })
  if failure then return failure end
  -- what was delivered directly and not read is part of this reply, or of an earlier page; what is to become of the
  -- code of jobs that were cancelled is not
  local wake = base .. 'wake:' .. consumer
  local words = redis.call('LRANGE', wake, 0, -1)
  if #words > 0 then redis.call('DEL', wake) end
  for _, element in ipairs(words) do
    if string.find(element, '^[SKT]') then redis.call('RPUSH', wake, element) end
  end
end
window_grant(base, me, jobs, bytes)
local taken, timer = pull_jobs(base, queue, me)
if not taken then
  --- @include "queue/refused"
  return refused_reply(timer)
end
window_account(base, me, #taken > 0)
for _, part in ipairs(taken) do reply[#reply + 1] = part end
return { queue.now, me.state, timer, {}, behind, unpack(reply) }
