--- How far the stopping of a job is that was cancelled while it ran.
--- KEYS: meta, guard
--- ARGV: id
--- REPLY: {now, stage, 1 if the consumer is gone, 1 if its process is to be killed, when it was cancelled (ms)}:
---   requested (its consumer is notified), delivered (the code that runs has been interrupted), ended (it runs no more);
---   "" where nobody asked for that, or the record is gone. A consumer that is gone says no more: its lease may have
---   ended while its process lives
--- ERRORS: SCHEMA
--- @include "queue/open"
--- @include "stop/record"

local meta = KEYS[1]
local id = ARGV[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local key, head, said = stop_record(base, id)
if not key or not said.by then return { queue.now, '', 0, 0, 0 } end
local here = redis.call('HEXISTS', base .. 'consumer:' .. said.by, 'term')
return { queue.now, tostring(said.stop), 1 - here, said.kill and 1 or 0, tonumber(string.match(head, '%d+')) }
