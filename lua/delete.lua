--- Begin to delete a queue, or look what is left of one that is being deleted. From then on it takes no jobs and no
--- consumers.
--- KEYS: meta, guard
--- ARGV: jobs, consumers, to
---   jobs, consumers: "1" = also where some are there; to: the queue that its jobs go to, "" = they end
--- REPLY: {now, word, {names}, {ids of dead letters}, jobs that wait or are dead, jobs in the outbox}; word: unknown, or
---   why it is not deleted: target (names: queues whose jobs come here), jobs, consumers; else deleting (names: its
---   consumers, at most 100; ids: at most 250)
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/open"
--- @include "queue/schema_stamp"
--- @include "queue/sound"
--- @include "queue/join"

local meta = KEYS[1]
local jobs = ARGV[1]
local consumers = ARGV[2]
local to = ARGV[3]

local base = string.sub(meta, 1, -5)
if not (jobs and consumers and to) then return redis.error_reply('BADARGS delete takes three words') end
local row = queue_row(base)
local began = row[1] and string.find(row[1] .. ' ', ' deleting ', 1, true)
if not row[1] then return { 0, 'unknown', {}, {}, 0, 0 } end
if join_may(row[1]) then
  --- @stamp
  row[1] = STAMP
end
local queue, failure = queue_open(base, row)
if not queue then return failure end
failure = sound_fault(base, queue.levels) or sound_type(base, 'sources', 'hash')
if failure then return failure end

local names = redis.call('ZRANGE', base .. 'consumers', '0', '99')
local left = redis.call('HLEN', base .. 'jobs') - (tonumber(redis.call('HGET', meta, 'marked')) or 0)
local outgoing = redis.call('ZCARD', base .. 'outgoing')
if not began then
  local sources = redis.call('HKEYS', base .. 'sources')
  if #sources > 0 then return { queue.now, 'target', sources, {}, left, outgoing } end
  if left + outgoing > 0 and jobs ~= '1' then return { queue.now, 'jobs', {}, {}, left, outgoing } end
  if #names > 0 and consumers ~= '1' then return { queue.now, 'consumers', names, {}, left, outgoing } end
  -- first write: frees (README)
  redis.call('HDEL', meta, 'oom')
  schema_stamp(meta)
  if to ~= '' then redis.call('HSET', meta, 'jobs_to', to) end
end
return { queue.now, 'deleting', names, redis.call('ZRANGE', base .. 'dead', '0', '249'), left, outgoing }
