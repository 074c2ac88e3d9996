--- Walk the ids of all stored jobs a page at a time: for who looks for those that are in no place.
--- KEYS: meta, guard
--- ARGV: cursor, limit
---   cursor: "0", then what the last call returned, until it returns "0"; limit: about so many in this call, at most
---   1000
--- REPLY: {now, cursor, id, ...}
--- ERRORS: BADARGS | SCHEMA
--- @include "queue/open"

local meta = KEYS[1]
local cursor = ARGV[1]
local limit = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
limit = tonumber(limit)
if not limit or limit < 1 or limit > 1000 then return redis.error_reply('BADARGS check_scan: a limit from 1 to 1000') end

local scanned = redis.call('HSCAN', base .. 'jobs', cursor, 'COUNT', limit)
local out = { queue.now, scanned[1] }
for i = 1, #scanned[2], 2 do out[#out + 1] = scanned[2][i] end
return out
