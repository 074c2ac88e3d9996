--- @include "order/member"
--- @include "order/score"

--- Pages of what waits beside the lists: the ready heads, and then, group by group, what waits behind others.

local BROWSE_GROUPS = 64

--- The jobs of these members, but for those that are gone, into `out`.
local function browse_heads_members(base, members, out)
  if #members == 0 then return end
  local ids = {}
  for i, member in ipairs(members) do ids[i] = member_id(member) end
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
    if value then
      out[#out + 1] = ids[i]
      out[#out + 1] = value
    end
  end
end

--- A place as a cursor says it, by a member and its score.
local function browse_heads_place(member, score)
  local key = string.match(member, '^s(%w+)')
  return string.format('o%d.%d', score, member_position(member)) .. (key and '.' .. key or '')
end

--- What the member of that place begins with, up to the id.
local function browse_heads_prefix(score, position, key)
  if key ~= '' then return string.format('s%s', key) .. '\0' .. string.format('%014d', position) end
  return string.format('%02d%014d', 90 + math.floor(score / SCORE_LEVEL), position)
end

--- The index of the first member behind a place: of those with its score some stand before it.
local function browse_heads_index(key, score, prefix)
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. score)
  local high = low + redis.call('ZCOUNT', key, score, score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local member = redis.call('ZRANGE', key, middle, middle)[1]
    if member_before(prefix, string.sub(member, 1, #prefix)) then high = middle else low = middle + 1 end
  end
  return low
end

--- `heads`: the keys of the sets. `place`: how far they were seen, nil: not at all. Answers the same after this page, on
--- which are those that score less than `limit_score`.
local function browse_heads(base, heads, place, limit, out, limit_score)
  local score, position, standing = string.match(place or '', '^o(%d+)%.(%d+)%.?(%w*)')
  local room, found = limit - #out / 2, {}
  for _, key in ipairs(room > 0 and heads or {}) do
    local index = score and browse_heads_index(key, score, browse_heads_prefix(score, position, standing)) or 0
    local some = redis.call('ZRANGE', key, index, index + room - 1, 'WITHSCORES')
    for i = 1, #some, 2 do
      if tonumber(some[i + 1]) < limit_score then found[#found + 1] = { some[i], some[i + 1] } end
    end
  end
  if #heads > 1 then
    table.sort(found, function(one, other)
      local its, others = tonumber(one[2]), tonumber(other[2])
      return its < others or its == others and member_before(one[1], other[1])
    end)
  end
  local members, last = {}, found[math.min(room, #found)]
  for i = 1, math.min(room, #found) do members[i] = found[i][1] end
  browse_heads_members(base, members, out)
  return last and browse_heads_place(last[1], last[2]) or place
end

local function browse_heads_behind(base, cursor, limit, out, parts)
  local position, group = string.match(cursor, 'b(%d+)%.([^,]*)')
  for _ = 1, BROWSE_GROUPS do
    local room = limit - #out / 2
    if room <= 0 then break end
    local next_ = redis.call('ZRANGEBYLEX', base .. 'blocked', group and '[' .. group or '-', '+', 'LIMIT', 0, 1)[1]
    if next_ and next_ == group then
      -- what is behind the last one shown, if anything
      local members = redis.call('ZRANGEBYSCORE', base .. 'group:' .. next_, '(' .. position, '+inf', 'LIMIT', 0, room)
      browse_heads_members(base, members, out)
      if #members > 0 then position = member_position(members[#members]) end
      if #members < room then
        next_ = redis.call('ZRANGEBYLEX', base .. 'blocked', '(' .. group, '+', 'LIMIT', 0, 1)[1]
        if not next_ then break end
        group, position = next_, 0
      end
    elseif next_ then
      group, position = next_, 0
    else
      break
    end
  end
  if group then parts[#parts + 1] = string.format('b%d.', position) .. group end
end

--- The places behind all members of the sets `heads`, and behind all groups, into `parts`.
local function browse_heads_tail(base, heads, parts)
  local score, member
  for _, key in ipairs(heads) do
    local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    if last[1] then
      local its = tonumber(last[2])
      if not score or its > score or its == score and member_before(member, last[1]) then score, member = its, last[1] end
    end
  end
  if score then parts[#parts + 1] = browse_heads_place(member, score) end
  local group = redis.call('ZREVRANGEBYLEX', base .. 'blocked', '+', '-', 'LIMIT', 0, 1)[1]
  local behind = group and redis.call('ZREVRANGE', base .. 'group:' .. group, 0, 0)[1]
  if behind then parts[#parts + 1] = string.format('b%d.', member_position(behind)) .. group end
end
