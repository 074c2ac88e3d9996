--- Read schedules: those named, or all, page by page.
--- KEYS: meta, guard
--- ARGV: cursor, names...
---   cursor: "0", then what the last call returned, until that is "0"; "" = the ones named, at most 100
--- REPLY: {now, cursor, name, schedule (JSON), its next tick in ms or "", ...}
--- ERRORS: BADARGS | SCHEMA
--- @include "queue/clock"
--- @include "queue/schema"

local meta = KEYS[1]
local cursor = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
local row = redis.call('HMGET', meta, 'v', 'clock')
local fault = schema_fault(row[1])
if fault then return fault end
if #ARGV > FIRST + 99 or cursor ~= '' and not string.find(cursor, '^%d+$') then
  return redis.error_reply('BADARGS read_schedules takes a cursor or at most 100 names')
end
local reply = { clock(row[2]), '0' }
local function tell(name, record)
  if not record then return end
  reply[#reply + 1] = name
  reply[#reply + 1] = record
  reply[#reply + 1] = redis.call('ZSCORE', base .. 'ticks', name) or ''
end
if cursor == '' then
  for i = FIRST, #ARGV do tell(ARGV[i], redis.call('HGET', base .. 'schedules', ARGV[i])) end
else
  local scanned = redis.call('HSCAN', base .. 'schedules', cursor, 'COUNT', 100)
  reply[2] = scanned[1]
  for i = 1, #scanned[2], 2 do tell(scanned[2][i], scanned[2][i + 1]) end
end
return reply
