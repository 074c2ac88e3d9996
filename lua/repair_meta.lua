--- Set right what `meta` says of the lists: levels in use, the last positions given, how many cancelled elements there
--- are, who watches the schedule.
--- KEYS: meta
--- ARGV: was, marked, levels...
---   was, marked: the counter of cancelled elements becomes `marked` if it still is `was`; both "" = leave it
---   levels: numbers of levels that have a list
--- REPLY: {now, {names of the fields that were changed}}
--- ERRORS: SCHEMA
--- @include "queue"
--- @include "levels"
--- @include "find_place"
--- @include "consumers"

local meta = KEYS[1]
local was = ARGV[1]
local marked = ARGV[2]
local FIRST = 3

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end

local changed = {}
if marked ~= '' and (redis.call('HGET', meta, 'marked') or '0') == was and was ~= marked then
  redis.call('HSET', meta, 'marked', marked)
  changed[#changed + 1] = 'marked'
end
local used = {}
for i = FIRST, #ARGV do
  if tonumber(ARGV[i]) then used[tonumber(ARGV[i])] = true end
end
local levels = levels_use(meta, queue.levels, used)
if levels ~= queue.levels then changed[#changed + 1] = 'levels' end
local row = redis.call('HMGET', meta, 'seq', 'promoted')
local seq, promoted = tonumber(row[1]) or 0, tonumber(row[2]) or 0
for _, level in ipairs(levels_list(levels)) do
  local last = redis.call('LINDEX', base .. 'ready:' .. level, -1)
  seq = math.max(seq, last and place_position(redis.call('HGET', base .. 'jobs', last)) or 0)
  last = redis.call('LINDEX', base .. 'due:' .. level, -1)
  promoted = math.max(promoted, last and (place_position(redis.call('HGET', base .. 'jobs', last)) or HEAD) - HEAD or 0)
end
if seq > (tonumber(row[1]) or 0) then
  redis.call('HSET', meta, 'seq', string.format('%d', seq))
  changed[#changed + 1] = 'seq'
end
if promoted > (tonumber(row[2]) or 0) then
  redis.call('HSET', meta, 'promoted', string.format('%d', promoted))
  changed[#changed + 1] = 'promoted'
end
if queue.timer and not redis.call('ZSCORE', base .. 'consumers', queue.timer) then
  redis.call('HDEL', meta, 'timer')
  if not queue.paused then consumer_pass_timer(base, queue.now) end
  changed[#changed + 1] = 'timer'
end
if not row[1] and seq == 0 and queue.levels == '' then return { queue.now, changed } end
if redis.call('HEXISTS', meta, 'v') == 0 then
  schema_stamp(meta)
  changed[#changed + 1] = 'v'
end
return { queue.now, changed }
