--- Look at waiting jobs in their order, a page at a time, and change nothing. The cursor is a place in each list, so it
--- stays right while jobs come and go: nothing is shown twice, a new job is shown in its turn.
--- KEYS: meta, guard
--- ARGV: cursor, limit
---   cursor: "" or what the last page gave: "<level><d|r><position>.<due>@<index>,...", the index only to find the
---   place sooner; "<level><d|r>-": a list that is not looked at; in a queue with groups also
---   "o<score>.<position>[.<sort key>]", a place among the ready heads, and "b<position>.<group>", one among what waits behind others; "only,", "heads,": but the
---   ones or the others nothing is looked at; where shares take turns "l<score>.<position>.<strand>", one behind heads; with "<level><d|r>-": but lists; "tail": nothing is shown, and the reply's
---   cursor is the place behind all that waits now; limit: at most 500
--- REPLY: {now, cursor, id, value, ...}; no job, and the cursor of the call: the tail, for now; the cursor may end in
---   "#<number>": so many of the jobs, the last ones, wait behind others of their groups
--- ERRORS: BADARGS | SCHEMA
--- @hooks audience
--- @include "queue/open"
--- @include "order/levels"
--- @include "order/search"

local meta = KEYS[1]
local cursor = ARGV[1]
local limit = ARGV[2]

--- Looks at one list, which may be full of what was cancelled while it waited.
local ROUNDS = 20

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
limit = tonumber(limit)
if not limit or limit < 1 or limit > 500 then return redis.error_reply('BADARGS browse: a limit from 1 to 500') end

local seen, out, jobs_key = {}, {}, base .. 'jobs'
for list, place in string.gmatch(cursor, '(%d+[dr])([^,]*)') do
  local position, due, index = string.match(place, '^(%d+)%.(%d+)@?(%d*)$')
  if position then
    seen[list] = { due = tonumber(due), position = tonumber(position), index = tonumber(index) }
  elseif place == '-' then
    seen[list] = 'left out'
  end
end

local levels = levels_list(queue.levels)
local tail = cursor == 'tail'
if tail then
  --- @include "order/browse_tail"
  browse_tail(base, levels, seen)
  levels = {}
end
--- @if heads
--- @include "order/browse_heads"
local only = string.match(cursor, '^(%a%a+),') or string.find(cursor, '%d[dr]%-') and 'lists'
if only == 'only' or only == 'heads' then levels = {} end
local heads
--- @each heads = heads(base)
local merged = browse_heads_open(base, heads, string.match(cursor, 'o%d+%.%d+%.?%w*'), limit, out)
--- @end
for _, level in ipairs(levels) do
  for _, kind in ipairs({ 'd', 'r' }) do
    local key, list, index = base .. (kind == 'd' and 'due:' or 'ready:') .. level, level .. kind, 0
    local last = seen[list]
    if last and last ~= 'left out' and #out < 2 * limit then
      index = order_search(base, key, { due = last.due, position = last.position + 1 }, last.index)
    end
    for _ = 1, last == 'left out' and 0 or ROUNDS do
      local ids = #out < 2 * limit and redis.call('LRANGE', key, index, index + limit - #out / 2 - 1) or {}
      if #ids == 0 then break end
      local values = redis.call('HMGET', jobs_key, unpack(ids))
      for i, id in ipairs(ids) do
        --- @if heads
        local stands = not only and sort_key_read(values[i])
        if stands then browse_heads_before(merged, score_of(level, stands.due, stands.position), stands.position) end
        if #out >= 2 * limit then
          for rest = #ids, i, -1 do ids[rest] = nil end
          break
        end
        --- @end
        if values[i] and string.byte(values[i]) ~= 33 then
          out[#out + 1] = id
          out[#out + 1] = values[i]
        end
      end
      index = index + #ids
      -- how far this list was seen: the last element that says its place
      for i = #ids, 1, -1 do
        local place = sort_key_read(values[i])
        if place then
          place.index = index
          seen[list] = place
          break
        end
      end
    end
  end
  --- @if heads
  if not only then browse_heads_before(merged, (10 - level) * SCORE_LEVEL, 0) end
  --- @end
end
local parts = {}
--- @if heads
if tail then
  browse_heads_tail(base, heads, parts)
elseif only ~= 'only' and only ~= 'lists' then
  browse_heads_before(merged, math.huge, 0)
end
if not tail then parts[#parts + 1] = merged.place end
--- @if strand
--- @include "order/browse_strands"
if tail then
  browse_strands_tail(base, parts)
elseif only ~= 'only' and only ~= 'lists' then
  browse_strands(base, cursor, limit, out, parts)
end
--- @end
local open = #out
if not tail and (not only or only == 'only') then browse_heads_behind(base, cursor, limit, out, parts) end
--- @end
for list, place in pairs(seen) do
  parts[#parts + 1] = list .. (place == 'left out' and '-'
    or string.format('%d.%d', place.position, place.due) .. (place.index and string.format('@%d', place.index) or ''))
end
table.sort(parts)
local after = table.concat(parts, ',')
--- @if heads
if only == 'only' or only == 'heads' then after = only .. ',' .. after end
after = after .. string.format('#%d', (#out - open) / 2)
--- @end
return { queue.now, after, unpack(out) }
