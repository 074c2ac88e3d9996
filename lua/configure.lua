--- Set a queue's options. What would change the meaning of jobs that are there is refused.
--- KEYS: meta, guard
--- ARGV: options...
---   options: field, value, ...: priorities (1 to 10), max_deliveries, max_crashes (0: no limit), keep_ms,
---   history_rows_max, and those of policies: a queue that has no such policy yet takes it on; v: the stamp of another
---   kind, which may lack a policy only while the queue has no jobs
--- REPLY: {now}
--- ERRORS: BADARGS | CONFLICT: <option> and why it cannot be | DAMAGED | SCHEMA | what policies refuse
--- @hooks audience
--- @include "queue/open"
--- @include "queue/schema_stamp"
--- @include "queue/sound"
--- @include "queue/join"
--- @include "order/any"

local meta = KEYS[1]
local FIRST = 1

local base = string.sub(meta, 1, -5)
if #ARGV % 2 ~= 0 then return redis.error_reply('BADARGS configure takes pairs of option and value') end
local row = queue_row(base)
local limits = {
  priorities = { 1, 10 },
  max_deliveries = { 0, 1000000 },
  max_crashes = { 0, 1000000 },
  keep_ms = { 1000, 31536000000 },
  history_rows_max = { 0, 1000000000 },
}
local conflict
--- @stamp
local stamp, changed = STAMP, {}
for i = FIRST, #ARGV, 2 do
  if ARGV[i] == 'v' then
    stamp = ARGV[i + 1]
  else
    changed[#changed + 1] = ARGV[i]
    changed[#changed + 1] = ARGV[i + 1]
  end
end
--- @if named
local names = {}
--- @each named(changed, names)
if #names > 0 and join_may(row[1]) then row[1] = STAMP end
--- @end
--- @if options
local given, more = {}, false
for i = 1, #changed, 2 do
  given[changed[i]] = changed[i + 1]
  more = more or not limits[changed[i]]
end
--- @each conflict = options(base, limits, given)
if more and join_may(row[1]) then row[1] = STAMP end
--- @end
local queue, failure = queue_open(base, row)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
if conflict then return conflict end
if stamp ~= STAMP then
  if string.match(stamp, '^%S*') ~= '1' then return redis.error_reply('BADARGS configure: v = ' .. stamp) end
  local given_up = {}
  for policy in string.gmatch(string.sub(STAMP, 3), '%S+') do
    local stays = policy == 'levels' or string.find(stamp .. ' ', ' ' .. policy .. ' ', 1, true)
    if not stays and any_job(base) then
      return redis.error_reply('CONFLICT kind is ' .. string.sub(STAMP, 3) .. ', and the queue has jobs')
    end
    given_up[policy] = not stays
  end
  --- @each conflict = keeps(base, given_up)
  if conflict then return conflict end
end
for i = 1, #changed, 2 do
  local option, value = changed[i], tonumber(changed[i + 1])
  local limit = limits[option]
  if not limit or not value or value < limit[1] or value > limit[2] or value ~= math.floor(value) then
    return redis.error_reply('BADARGS configure: ' .. option .. ' = ' .. changed[i + 1])
  end
  if option == 'priorities' and queue.levels ~= '' then
    local present = redis.call('HGET', meta, 'priorities') or '10'
    if tonumber(present) ~= value then
      return redis.error_reply('CONFLICT priorities were ' .. present .. ' when this queue got jobs, and cannot change')
    end
  end
end
failure = sound_fault(base, queue.levels)
if failure then return failure end
--- @each ripen(base, queue)

for i = 1, #changed, 2 do
  redis.call('HSET', meta, changed[i], changed[i + 1])
  if changed[i] == 'keep_ms' then
    -- what has ended already is kept as long as what ends from now on
    redis.call('PEXPIRE', base .. 'ended', 2 * changed[i + 1])
    redis.call('PEXPIRE', base .. 'ended:old', changed[i + 1])
  end
end
--- @if named
for i = 1, #names, 2 do
  if names[i + 1] == '' then
    redis.call('HDEL', meta, names[i])
  else
    redis.call('HSET', meta, names[i], names[i + 1])
  end
end
--- @end
--- @each configured(base, queue)
schema_stamp(meta)
if stamp ~= STAMP then
  --- @each restamp(base)
  redis.call('HSET', meta, 'v', stamp)
end
--- @each vacated(base, { now = queue.now })
return { queue.now }
