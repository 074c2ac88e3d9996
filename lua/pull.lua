--- Acquire jobs for a consumer, or after a reconnect tell it what it holds.
--- KEYS: meta, guard
--- ARGV: consumer, term, jobs, bytes, recall
---   jobs, bytes: the consumer's whole window (bytes 0: no limit)
---   recall: "1" = the reply also holds, first, what is already in the consumer's hands (H-18), up to 3000 jobs
--- REPLY: {now, state, timer, {}, id, value, ...}; timer: ms until the next due job where this consumer watches it, or -1
--- ERRORS: BADARGS | GONE | SCHEMA
--- @include "queue"
--- @include "pull"

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
me, failure = queue_consumer(base, consumer, term)
if not me then return failure end
if me.browses then return redis.error_reply('BADARGS pull: a browser acquires nothing') end
jobs, bytes = tonumber(jobs), tonumber(bytes)
if not jobs or not bytes or jobs < 0 or bytes < 0 then return redis.error_reply('BADARGS pull: a window is two numbers') end

local reply = {}
if recall == '1' then
  local ids = redis.call('LRANGE', base .. 'held:' .. consumer, 0, RECALL_MAX - 1)
  local values = #ids > 0 and redis.call('HMGET', base .. 'jobs', unpack(ids)) or {}
  for i, id in ipairs(ids) do
    if values[i] then
      reply[#reply + 1] = id
      reply[#reply + 1] = values[i]
    end
  end
  -- what was handed over and not read is part of this reply
  redis.call('DEL', base .. 'wake:' .. consumer)
end
queue_window(base, me, jobs, bytes)
local taken, timer = pull_jobs(base, queue, me)
queue_account(base, me, #taken > 0)
for _, part in ipairs(taken) do reply[#reply + 1] = part end
return { queue.now, me.state, timer, {}, unpack(reply) }
