--- A writer will not repeat what came before this epoch: what it noted of that is forgotten, and steps that still come
--- for it are refused. The epoch itself can be repeated until the next one is committed.
--- KEYS: meta, guard
--- ARGV: run, epoch, keep
---   epoch: "" = the whole run is over; keep: ms for which the run is remembered from now
--- REPLY: how many logs are forgotten
--- ERRORS: BADARGS | SCHEMA
--- @include "queue/open"

local meta = KEYS[1]
local run = ARGV[1]
local epoch = ARGV[2]
local keep = ARGV[3]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end

if not (epoch == '' or tonumber(epoch)) or not string.match(keep or '', '^%d+$') or #keep > 15 then
  return redis.error_reply('BADARGS commit_write: an epoch, and a time in ms')
end

local state = base .. 'write:' .. run
local forgotten = 0
for _, field in ipairs(redis.call('HKEYS', state)) do
  local its = string.match(field, '^(%d+):%d+$')
  if its and (epoch == '' or tonumber(its) < tonumber(epoch)) then
    redis.call('UNLINK', base .. 'written:' .. run .. ':' .. field)
    redis.call('HDEL', state, field)
    forgotten = forgotten + 1
  end
end
if epoch == '' then
  redis.call('UNLINK', state)
else
  local done = redis.call('HGET', state, 'epoch')
  if not done or (tonumber(done) or 0) < tonumber(epoch) then redis.call('HSET', state, 'epoch', epoch) end
  redis.call('PEXPIRE', state, keep)
end
return forgotten
