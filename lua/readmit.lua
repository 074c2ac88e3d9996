--- Jobs that left this queue for another one are on their way back: what is kept of that departure is forgotten, so that
--- their ids are taken again. An id that is known for any other reason stays known (I8).
--- KEYS: meta, guard
--- ARGV: how, items...
---   how: "look" = nothing is forgotten; "go"
---   items: id, left, ... of at most 250 jobs; left: ms, when it left this queue, as it says itself; 0 = it never did
--- REPLY: {now, {what each id is, ...}}: free = this queue does not know it, left = it left then (and is free now, with
---   "go"), known
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/clock"
--- @include "queue/schema"
--- @include "queue/sound_type"
--- @include "result/read"
--- @include "result/records"

local meta = KEYS[1]
local how = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local row = redis.call('HMGET', meta, 'v', 'clock')
local fault = schema_fault(row[1])
if fault then return fault end
local count = (#ARGV - FIRST + 1) / 2
if how ~= 'look' and how ~= 'go' or count < 1 or count > 250 or count ~= math.floor(count) then
  return redis.error_reply('BADARGS readmit takes look or go, and 1 to 250 jobs with their departures')
end
fault = sound_type(base, 'jobs', 'hash') or sound_type(base, 'ended', 'hash') or sound_type(base, 'ended:old', 'hash')
if fault then return fault end

--- When the job left, as its record says; nil where it did not.
local function departure(record)
  local letter, ended = string.match(record, '^(%u)(%d+):')
  if letter == 'M' then return string.match(record, '"left":(%d+)}$') end
  -- dead letters and expired jobs that went elsewhere
  if letter == 'F' or letter == 'E' then return ended end
end

local answers = {}
-- first write: frees (README)
if how == 'go' then redis.call('HDEL', meta, 'oom') end
for i = 1, count do
  local id, left = ARGV[FIRST + 2 * (i - 1)], ARGV[FIRST + 2 * i - 1]
  local record = result_read(base, id)
  if redis.call('HEXISTS', base .. 'jobs', id) == 1 then
    answers[i] = 'known'
  elseif not record then
    answers[i] = 'free'
  elseif left ~= '0' and departure(record) == left then
    answers[i] = 'left'
    if how == 'go' then
      records_forget(base, id)
      redis.call('DEL', base .. 'result:' .. id)
    end
  else
    answers[i] = 'known'
  end
end
return { clock(row[2]), answers }
