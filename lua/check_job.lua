--- Every place that one job is in, at one moment: for a job that something seems wrong with.
--- KEYS: meta, guard
--- ARGV: id, member, deep, others...
---   member: a member of `scheduled` that speaks of this job, or ""; deep: "1" = walk the ready lists to their ends
---   (some 50 ms where a million jobs wait), else look only where its header says; others: consumers that are not
---   registered
--- REPLY: {now, head, due ms at its own member or "", due ms at `member` or "", dead (1 or 0), has a cause (1 or 0),
---   has a record (1 or 0), {list, how often, ...}, {consumer, how often, ...}}; of a job with a group the lists are
---   also heads, group:<group>, and turn where its group's turn is with it, or it has its permits; of one with labels
---   class:<n>; "heads at a wrong place" where it stands at `member`, which is not its own
---   head: as of check_page, with "h" before it where it is a header, "!" where it is a mark, "?" else
--- ERRORS: SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "order/search"
--- @include "order/standing"
--- @include "job/head"
--- @include "job/value"
--- @include "order/levels"
--- @include "result/read"
--- @include "consumer/most"

local meta = KEYS[1]
local id = ARGV[1]
local member = ARGV[2]
local deep = ARGV[3]
local FIRST = 4

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end

local value = redis.call('HGET', base .. 'jobs', id)
local head, own, standing = '', '', ''
if value then
  head = head_of(value)
  local job = head and value_parse(head .. ';')
  if job and not job.damaged then
    job.id = id
    standing = select(2, standing_of(job))
    own = redis.call('ZSCORE', base .. 'scheduled', schedule_member(job, id)) or ''
    head = 'h' .. head
  elseif string.byte(value) == 33 then
    head = value
  else
    head = '?' .. string.sub(value, 1, 40)
  end
end

local function times(key)
  return #redis.call('LPOS', key, id, 'COUNT', 0)
end

local place = sort_key_read(value)
local lists, holders = {}, {}
for _, level in ipairs(levels_list(queue.levels)) do
  for _, kind in ipairs({ 'due:', 'ready:' }) do
    local key, count = base .. kind .. level, 0
    if deep == '1' then
      count = times(key)
    elseif place and (kind == 'due:') == (place.due > 0)
      and redis.call('LINDEX', key, (order_search(base, key, place))) == id then
      count = 1
    end
    if count > 0 then
      lists[#lists + 1] = kind .. level
      lists[#lists + 1] = count
    end
  end
end
--- @if heads
local heads
--- @each heads = heads(base)
for _, key in ipairs(heads) do
  if member ~= '' and member ~= standing and redis.call('ZSCORE', key, member) then
    lists[#lists + 1] = string.sub(key, #base + 1) .. ' at a wrong place'
    lists[#lists + 1] = 1
  end
end
--- @end
--- @if found
local job = value and string.byte(value) ~= 33 and value_parse(value)
if job and not job.damaged then
  job.id = id
  --- @each lists = found(base, job, lists)
end
--- @end
--- @if awaits
if redis.call('HEXISTS', base .. 'deferred', id) == 1 then
  lists[#lists + 1] = 'deferred'
  lists[#lists + 1] = 1
end
--- @end
local names = redis.call('ZRANGE', base .. 'consumers', 0, CONSUMERS_LAST)
for i = FIRST, #ARGV do names[#names + 1] = ARGV[i] end
for _, name in ipairs(names) do
  local count = times(base .. 'held:' .. name)
  if count > 0 then
    holders[#holders + 1] = name
    holders[#holders + 1] = count
  end
end
return {
  queue.now,
  head,
  own,
  member ~= '' and redis.call('ZSCORE', base .. 'scheduled', member) or '',
  redis.call('ZSCORE', base .. 'dead', id) and 1 or 0,
  redis.call('HEXISTS', base .. 'causes', id),
  result_read(base, id) and 1 or 0,
  lists,
  holders,
}
