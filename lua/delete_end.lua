--- Nothing is left in a queue that is being deleted: its keys go. What stays is the last term, so that a consumer of the
--- former queue is none of a later one of the same name.
--- KEYS: meta, guard
--- ARGV: none
--- REPLY: {now, word}: deleted, left (there are jobs or consumers still), or other (it is not being deleted)
--- ERRORS: SCHEMA
--- @include "queue/open"
--- @include "queue/all_keys"

local meta = KEYS[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local word = 'other'
--- @if closed
word = 'left'
if redis.call('EXISTS', base .. 'jobs', base .. 'consumers', base .. 'outgoing') == 0 then
  word = 'deleted'
  local keys = all_keys(base, queue.levels)
  local term = tonumber(redis.call('HGET', meta, 'term')) or 0
  local clock_ = redis.call('HGET', meta, 'clock')
  redis.call('UNLINK', unpack(keys))
  redis.call('HSET', meta, 'v', '1', 'term', string.format('%d', term), 'deleted', string.format('%d', queue.now))
  if clock_ then redis.call('HSET', meta, 'clock', clock_) end
end
--- @end
return { queue.now, word }
