--- Set right what `meta` says of the lists: levels in use, whether there ever were due jobs, the last position given,
--- how many cancelled elements there are, who watches the schedule.
--- KEYS: meta, guard
--- ARGV: was, marked, highest, levels...
---   was, marked: the counter of cancelled elements becomes `marked` if it still is `was`; both "" = leave it
---   highest: a position that some job has, or 0; levels: numbers of levels that have a list
--- REPLY: {now, {names of the fields that were changed}}
--- ERRORS: BADARGS | DAMAGED | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "queue/schema_stamp"
--- @include "queue/sound"
--- @include "order/levels"
--- @include "order/sort_key"
--- @include "consumer/wake"

local meta = KEYS[1]
local was = ARGV[1]
local marked = ARGV[2]
local highest = ARGV[3]
local FIRST = 4

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end

failure = sound_fault(base, queue.levels)
if failure then return failure end

if string.find(marked, '%D') or not string.find(highest, '^%d+$') or #highest > 15 then
  return redis.error_reply('BADARGS repair_meta: a number of elements, and a position')
end

local changed = {}
if marked ~= '' and (redis.call('HGET', meta, 'marked') or '0') == was and was ~= marked then
  redis.call('HSET', meta, 'marked', marked)
  changed[#changed + 1] = 'marked'
end
local used = {}
for i = FIRST, #ARGV do
  if string.find(ARGV[i], '^%d%d?$') then used[tonumber(ARGV[i])] = true end
end
local levels = levels_use(meta, queue.levels, used)
if levels ~= queue.levels then changed[#changed + 1] = 'levels' end
local was_seq = redis.call('HGET', meta, 'seq')
local seq, due = math.max(tonumber(was_seq) or 0, tonumber(highest) or 0), false
for _, level in ipairs(levels_list(levels)) do
  local last = redis.call('LINDEX', base .. 'ready:' .. level, -1)
  local place = last and sort_key_read(redis.call('HGET', base .. 'jobs', last))
  if place then seq = math.max(seq, place.position) end
  due = due or redis.call('EXISTS', base .. 'due:' .. level) == 1
end
if seq > (tonumber(was_seq) or 0) then
  redis.call('HSET', meta, 'seq', string.format('%d', seq))
  changed[#changed + 1] = 'seq'
end
if due and not queue.promoted then
  redis.call('HSET', meta, 'promoted', '1')
  changed[#changed + 1] = 'promoted'
end
if queue.timer and not redis.call('ZSCORE', base .. 'consumers', queue.timer) then
  redis.call('HDEL', meta, 'timer')
  if not queue.paused then consumer_wake_timer(base, queue.now) end
  changed[#changed + 1] = 'timer'
end
if not was_seq and seq == 0 and queue.levels == '' then return { queue.now, changed } end
if redis.call('HEXISTS', meta, 'v') == 0 then
  schema_stamp(meta)
  changed[#changed + 1] = 'v'
end
return { queue.now, changed }
