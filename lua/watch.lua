--- Where a job is, how far by its own report, and what it logged; while it lives, the next change is a new entry of the
--- stream `watch:<id>`, on which who watches it blocks, and which is there for a minute.
--- KEYS: meta, guard
--- ARGV: id, how, after
---   how: look; wait: the caller blocks on the stream now, and wants no answer; after: the number of a line: those
---   behind it are wanted
--- REPLY: {now, bell, state, record, delivery, at, report, {line, ...}}; bell: the stream's last entry, "" for a job
---   that does not live; state: as of await_result; record: of an ended job, without its result; delivery, at (ms), report:
---   the last one, "" without one; lines: as of log/lines, at most 200. With wait {now, bell}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @include "queue/clock"
--- @include "queue/schema"
--- @include "queue/sound_type"
--- @include "log/lines"
--- @step "await_result"

local meta = KEYS[1]
local id = ARGV[1]
local how = ARGV[2]
local after = ARGV[3]

local base = string.sub(meta, 1, -5)
local row = redis.call('HMGET', meta, 'v', 'clock')
local fault = schema_fault(row[1])
if fault then return fault end
after = tonumber(after)
if how ~= 'look' and how ~= 'wait' or not after then
  return redis.error_reply('BADARGS watch: look or wait, and a number')
end
fault = sound_type(base, 'awaited', 'hash') or sound_type(base, 'watch:' .. id, 'stream')
  or sound_type(base, 'progress:' .. id, 'hash') or sound_type(base, 'log:' .. id, 'list')
  or sound_type(base, 'jobs', 'hash')
if fault then return fault end

local stream = base .. 'watch:' .. id
-- the id of the last entry of the stream, which is there from now on
local function bell()
  local last = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', '1')[1]
  local entry = last and last[1] or redis.call('XADD', stream, '*', 'w', '1')
  redis.call('PEXPIRE', stream, '60000')
  return entry
end
if how == 'wait' then
  -- first write: frees (README)
  redis.call('HDEL', meta, 'oom')
  return { clock(row[2]), bell() }
end

local said = redis.call('HMGET', base .. 'progress:' .. id, 'by', 'delivery', 'at', 'said')
local now, state, record = clock(row[2]), 'held', ''
-- nearly always: who reported last has it still
local by = said[1] and base .. 'held:' .. said[1]
fault = by and sound_type(base, 'held:' .. said[1], 'list')
if fault then return fault end
if not by or not redis.call('LPOS', by, id) then
  local seen = await_result_step({ meta }, { id, '0' })
  if seen.err then return seen end
  state, record = seen[2], string.match(seen[3], '^%a%d+:') or ''
end
local entry = ''
if state ~= 'ended' and state ~= 'unknown' then
  redis.call('HDEL', meta, 'oom')
  redis.call('HSET', base .. 'awaited', id, 'w')
  --- @each stays(base)
  entry = bell()
end
return { now, entry, state, record, said[2] or '', said[3] or '', said[4] or '', lines_after(base, id, after) }
