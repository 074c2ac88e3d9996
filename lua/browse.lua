--- Look at waiting jobs in their order, a page at a time, and change nothing. The cursor is a position per list, so it
--- stays right while jobs come and go: nothing is shown twice, a new job is shown in its turn.
--- KEYS: meta
--- ARGV: cursor, limit
---   cursor: "" or what the last page gave: "<level><d|r><position>,..."; limit: at most 500
--- REPLY: {now, cursor, id, value, ...}; fewer than limit: the tail, for now
--- ERRORS: BADARGS | SCHEMA
--- @include "queue"
--- @include "levels"

local meta = KEYS[1]
local cursor = ARGV[1]
local limit = ARGV[2]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
limit = tonumber(limit)
if not limit or limit < 1 or limit > 500 then return redis.error_reply('BADARGS browse: a limit from 1 to 500') end

local seen, out, jobs_key = {}, {}, base .. 'jobs'
for level, kind, position in string.gmatch(cursor, '(%d+)([dr])(%-?%d+)') do seen[level .. kind] = tonumber(position) end

local function position_at(key, index)
  local id = redis.call('LINDEX', key, index)
  local value = id and redis.call('HGET', jobs_key, id)
  return value and tonumber(string.match(value, '^!?(-?%d+)')) or -math.huge
end

--- Index of the first element behind `position`: the lists are sorted, so a binary search finds it.
local function index_behind(key, position)
  local low, high = 0, redis.call('LLEN', key)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if position_at(key, middle) <= position then low = middle + 1 else high = middle end
  end
  return low
end

for _, level in ipairs(levels_list(queue.levels)) do
  for _, kind in ipairs({ 'd', 'r' }) do
    local key = base .. (kind == 'd' and 'due:' or 'ready:') .. level
    local index, rounds = seen[level .. kind] and index_behind(key, seen[level .. kind]) or 0, 0
    while #out < 2 * limit and rounds < 20 do
      rounds = rounds + 1
      local ids = redis.call('LRANGE', key, index, index + limit - #out / 2 - 1)
      if #ids == 0 then break end
      local values = redis.call('HMGET', jobs_key, unpack(ids))
      for i, id in ipairs(ids) do
        if values[i] then
          seen[level .. kind] = tonumber(string.match(values[i], '^!?(-?%d+)'))
          if string.byte(values[i]) ~= 33 then
            out[#out + 1] = id
            out[#out + 1] = values[i]
          end
        end
      end
      index = index + #ids
    end
  end
end
local parts = {}
for list, position in pairs(seen) do parts[#parts + 1] = string.format('%s%d', list, position) end
table.sort(parts)
return { queue.now, table.concat(parts, ','), unpack(out) }
