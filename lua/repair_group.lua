--- Set a group right: its turn, and whether jobs are known to wait behind it; or a limit: its permits, and who waits for
--- them; or the number of those that wait behind others.
--- KEYS: meta, guard
--- ARGV: group, was, blocked, fewer, last, by, ids...
---   group: of a queue with limits, a limit, of one with shares "<level>.<share>": escaped, as in the names of keys; "" = only the number
---   was, blocked: the number of blocked jobs becomes `blocked` if it still is `was`; both "" = leave it
---   fewer: so many permits of a limit fewer are said to be out as jobs have, as it was seen when `last` had been the last
---   to set such a number right; by: a name for who does it now; ids: jobs that seemed neither ready nor held, and have
---   permits of it
--- REPLY: {now, how much was changed}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/sound"
--- @include "held/scan"
--- @include "consumer/notify_opened"
--- @hooks repair

local meta = KEYS[1]
local group = ARGV[1]
local was = ARGV[2]
local blocked = ARGV[3]
local fewer = ARGV[4]
local last = ARGV[5]
local by = ARGV[6]
local FIRST = 7

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
if string.find(blocked, '%D') or string.find(group, '[^@%w%%_=.-]') or not string.find(fewer, '^-?%d+$') or by == '' then
  return redis.error_reply('BADARGS repair_group: an escaped group or limit, a number of jobs and one of permits, a name')
end

failure = sound_fault(base, queue.levels) or sound_type(base, 'group:' .. group, 'zset')
if failure then return failure end

local changed = 0
if blocked ~= '' and was ~= blocked and (redis.call('HGET', meta, 'blocked') or '0') == was then
  redis.call('HSET', meta, 'blocked', blocked)
  changed = 1
end
if group ~= '' then
  local function held(id)
    return held_scan_holder(base, id)
  end
  local some, seen = nil, { fewer = tonumber(fewer), last = last, by = by, ids = {} }
  for i = FIRST, #ARGV do seen.ids[#seen.ids + 1] = ARGV[i] end
  --- @each some = repair(base, queue, group, held, seen)
  changed = changed + (some or 0)
  notify_opened(base, queue)
end
return { queue.now, changed }
