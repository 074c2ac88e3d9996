--- @include "schedule/member"

--- Pages of what waits beside the lists: the ready heads, and then, group by group, what waits behind others.

local BROWSE_PAGES, BROWSE_GROUPS = 20, 64

--- The jobs of these members, but for those that are gone, into `out`.
local function browse_heads_members(base, members, out)
  if #members == 0 then return end
  local ids = {}
  for i, member in ipairs(members) do ids[i] = string.sub(member, MEMBER_PREFIX + 1) end
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
    if value then
      out[#out + 1] = ids[i]
      out[#out + 1] = value
    end
  end
end

local function browse_heads_position(member)
  return tonumber(string.sub(member, 3, MEMBER_PREFIX))
end

--- The members of one set behind a place, at most `room`: into `found`, {member, score}.
local function browse_heads_page(key, score, skip, room, limit, found)
  local count = 0
  for page = 0, BROWSE_PAGES - 1 do
    local some = redis.call('ZRANGEBYSCORE', key, score or '-inf', '+inf', 'WITHSCORES', 'LIMIT', page * limit, limit)
    for i = 1, #some, 2 do
      -- at the same instant positions decide
      if count < room and not (some[i + 1] == score and browse_heads_position(some[i]) <= skip) then
        found[#found + 1] = { some[i], some[i + 1] }
        count = count + 1
      end
    end
    if #some < 2 * limit or count == room then break end
  end
end

--- `heads`: the keys of the sets. `cursor`: of the page before; `parts`: of the one after this.
local function browse_heads(base, heads, cursor, limit, out, parts)
  local score, position = string.match(cursor, 'o(%d+)%.(%d+)')
  local room, found = limit - #out / 2, {}
  if room > 0 then
    for _, key in ipairs(heads) do browse_heads_page(key, score, tonumber(position) or -1, room, limit, found) end
  end
  if #heads > 1 then
    table.sort(found, function(one, other)
      local its, others = tonumber(one[2]), tonumber(other[2])
      return its < others or its == others and one[1] < other[1]
    end)
  end
  local members, last = {}, found[math.min(room, #found)]
  for i = 1, math.min(room, #found) do members[i] = found[i][1] end
  browse_heads_members(base, members, out)
  if last then
    parts[#parts + 1] = string.format('o%d.%d', last[2], browse_heads_position(last[1]))
  elseif score then
    parts[#parts + 1] = 'o' .. score .. '.' .. position
  end
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
      if #members > 0 then position = browse_heads_position(members[#members]) end
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
  local score, position
  for _, key in ipairs(heads) do
    local last = redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')
    if last[1] then
      local its, at = tonumber(last[2]), browse_heads_position(last[1])
      if not score or its > score or its == score and at > position then score, position = its, at end
    end
  end
  if score then parts[#parts + 1] = string.format('o%d.%d', score, position) end
  local group = redis.call('ZREVRANGEBYLEX', base .. 'blocked', '+', '-', 'LIMIT', 0, 1)[1]
  local behind = group and redis.call('ZREVRANGE', base .. 'group:' .. group, 0, 0)[1]
  if behind then parts[#parts + 1] = string.format('b%d.', browse_heads_position(behind)) .. group end
end
