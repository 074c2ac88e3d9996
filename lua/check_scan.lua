--- Walk the jobs a page at a time and name those that seem to be in no place: for who checks a live server.
--- KEYS: meta
--- ARGV: cursor, limit
---   cursor: "0", then what the last call returned, until it returns "0"; limit: about so many in this call, at most 500
--- REPLY: {now, cursor, id, ...}
--- ERRORS: BADARGS | SCHEMA
--- @include "queue"
--- @include "find_place"
--- @include "hands"
--- @include "levels"

local meta = KEYS[1]
local cursor = ARGV[1]
local limit = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
limit = tonumber(limit)
if not limit or limit < 1 or limit > 500 then return redis.error_reply('BADARGS check_scan: a limit from 1 to 500') end

local function marked_waits(id, position)
  for _, level in ipairs(levels_list(queue.levels)) do
    local key = place_key(base, level, position)
    if redis.call('LINDEX', key, (place_index(base, key, position))) == id then return true end
  end
  return false
end

local scanned = redis.call('HSCAN', base .. 'jobs', cursor, 'COUNT', limit)
local out = { queue.now, scanned[1] }
for i = 1, #scanned[2], 2 do
  local id, value = scanned[2][i], scanned[2][i + 1]
  local placed = false
  if string.byte(value) == 33 then
    placed = marked_waits(id, place_position(value) or 0)
  elseif string.match(value, '^-?%d+,%d+[%d,-]*;') then
    local job = value_parse(value)
    placed = redis.call('ZSCORE', base .. 'dead', id)
      or redis.call('ZSCORE', base .. 'scheduled', value_seat(job.position, id))
      or place_waits(base, id, job)
      or hands_holder(base, id)
  end
  if not placed then out[#out + 1] = id end
end
return out
