--- Begin to delete a queue, or look what is left of one that is being deleted. From then on it takes no jobs and no
--- consumers.
--- KEYS: meta, guard
--- ARGV: jobs, consumers, to, back
---   jobs, consumers: "1" = also if some are there; to: the queue that its jobs go to, "" = where they went before, or,
---   with jobs, nowhere: they end; back: "1" = it is not deleted after all, and is as it was
--- REPLY: {now, word, {names}, {ids of dead letters}, jobs that wait or are dead, jobs in the outbox, to}; word: unknown,
---   or why it is not deleted: target (names: queues whose jobs come here), jobs, consumers, back; else deleting (names:
---   its consumers, at most 100; ids: at most 250; to: the queue that its jobs go to, or "")
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/open"
--- @include "queue/schema_stamp"
--- @include "queue/sound"
--- @include "queue/join"

local meta = KEYS[1]
local jobs = ARGV[1]
local consumers = ARGV[2]
local to = ARGV[3]
local back = ARGV[4]

local base = string.sub(meta, 1, -5)
if not (jobs and consumers and to and back) then return redis.error_reply('BADARGS delete takes four words') end
local row = queue_row(base)
local began = row[1] and string.find(row[1] .. ' ', ' deleting ', 1, true)
if not row[1] then return { 0, 'unknown', {}, {}, 0, 0, '' } end
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
  local word = #sources > 0 and 'target' or left + outgoing > 0 and jobs ~= '1' and 'jobs'
    or #names > 0 and consumers ~= '1' and 'consumers' or back == '1' and 'back'
  if word then return { queue.now, word, word == 'target' and sources or names, {}, left, outgoing, '' } end
end
-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
if back == '1' then
  --- @stamp
  local stamp = string.gsub(STAMP, ' deleting', '')
  redis.call('HSET', meta, 'v', stamp == '1 levels' and '1' or stamp)
  redis.call('HDEL', meta, 'jobs_to')
  return { queue.now, 'back', names, {}, left, outgoing, '' }
end
if not began then schema_stamp(meta) end
if to ~= '' then
  redis.call('HSET', meta, 'jobs_to', to)
elseif jobs == '1' then
  redis.call('HDEL', meta, 'jobs_to')
end
return { queue.now, 'deleting', names, redis.call('ZRANGE', base .. 'dead', '0', '249'), left, outgoing,
  redis.call('HGET', meta, 'jobs_to') or '' }
