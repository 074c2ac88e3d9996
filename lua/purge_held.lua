--- End jobs that one consumer holds: each gets a record and a row in history, the consumer is notified, and its later
--- settle changes nothing (X-04).
--- KEYS: meta, guard
--- ARGV: consumer, ids...
---   ids: at most 250
--- REPLY: {now, how many ended, {ids that live elsewhere by now}}; ids of jobs that have ended or died are passed over
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "held/remove"
--- @include "finish/end"

local meta = KEYS[1]
local consumer = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if #ARGV < FIRST or #ARGV > FIRST + 249 then return redis.error_reply('BADARGS purge_held takes 1 to 250 ids') end

failure = sound_fault(base, queue.levels, { consumer })
if failure then return failure end

--- @each ripen(base, queue)
local ids = {}
for i = FIRST, #ARGV do ids[#ids + 1] = ARGV[i] end
local row = redis.call('HMGET', base .. 'consumer:' .. consumer, 'bytes', 'worker')
local mine, where = held_remove_find(base, consumer, ids)
local ended, ends, elsewhere, bytes = {}, {}, {}, 0
for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
  local id = ids[i]
  if mine[id] == true then
    mine[id] = 'seen'
    ended[#ended + 1] = id
    ends[#ends + 1] = 'X' .. id
    bytes = bytes + (value and #value or 0)
  elseif value and not mine[id] and string.byte(value) ~= 33 and not redis.call('ZSCORE', base .. 'dead', id) then
    elsewhere[#elsewhere + 1] = id
  end
end
if #ended == 0 then return { queue.now, 0, elsewhere } end

held_remove(base, consumer, mine, where)
if (tonumber(row[1]) or 0) > 0 then redis.call('HINCRBY', base .. 'consumer:' .. consumer, 'held_bytes', -bytes) end
redis.call('RPUSH', base .. 'wake:' .. consumer, unpack(ends))
local count = end_jobs(base, queue, ended, 'P', 'purged', row[2])
return { queue.now, count, elsewhere }
