--- What became of a job, or a promise that its record will be put into its result list.
--- KEYS: meta
--- ARGV: id, wait
---   wait: "1" = the caller will block on the result list
--- REPLY: {now, state, record}; state: ended (with record), ready, scheduled, held, unknown
--- ERRORS: SCHEMA
--- @include "queue"
--- @include "value"
--- @include "seat"
--- @include "records_read"
--- @include "hands_look"

local meta = KEYS[1]
local id = ARGV[1]
local wait = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end

local value = redis.call('HGET', base .. 'jobs', id)
local live = value and string.byte(value) ~= 33 and not redis.call('ZSCORE', base .. 'dead', id)
if not live then
  local record = redis.call('LINDEX', base .. 'result:' .. id, 0) or records_read(base, id)
  local cause = not record and redis.call('HGET', base .. 'causes', id)
  if cause then record = string.format('F%d:', redis.call('ZSCORE', base .. 'dead', id) or queue.now) .. cause end
  return { queue.now, record and 'ended' or 'unknown', record or '' }
end
if wait == '1' then
  redis.call('HSET', base .. 'awaited', id, 1)
  -- a list that an earlier job of this id left behind is no answer
  redis.call('DEL', base .. 'result:' .. id)
end
local state = 'ready'
if redis.call('ZSCORE', base .. 'scheduled', seat_of(value_parse(value), id)) then
  state = 'scheduled'
elseif hands_holder(base, id) then
  state = 'held'
end
return { queue.now, state, '' }
