--- @include "order/member"
--- @include "order/score"

--- Pages of what waits beside the lists: the ready heads, and then, group by group, what waits behind others.

--- Groups that one page looks into: each has a job, and a page at most 500.
local BROWSE_GROUPS = 1000

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

--- The next members of the sets, in their order, {score=, position=, id=, value=, member=}: as many as fit on a page.
local function browse_heads_fill(merged)
  local score, position, standing = string.match(merged.place or '', '^o(%d+)%.(%d+)%.?(%w*)')
  local room, found = merged.limit - #merged.out / 2, {}
  for _, key in ipairs(room > 0 and merged.heads or {}) do
    local index = score and browse_heads_index(key, score, browse_heads_prefix(score, position, standing)) or 0
    local some = redis.call('ZRANGE', key, index, index + room - 1, 'WITHSCORES')
    for i = 1, #some, 2 do
      found[#found + 1] = { member = some[i], text = some[i + 1], score = tonumber(some[i + 1]) }
    end
  end
  if #merged.heads > 1 then
    table.sort(found, function(one, other)
      return one.score < other.score or one.score == other.score and member_before(one.member, other.member)
    end)
  end
  local ids = {}
  for i = 1, math.min(room, #found) do ids[i] = member_id(found[i].member) end
  local values = #ids > 0 and redis.call('HMGET', merged.base .. 'jobs', unpack(ids)) or {}
  for i, id in ipairs(ids) do
    found[i].id, found[i].value, found[i].position = id, values[i], member_position(found[i].member)
  end
  merged.found, merged.at, merged.last = found, 1, #ids
  merged.more = #ids > 0 and #ids == room
end

--- What stands in the sets `heads`, behind a place (nil: all), to be merged into the page `out` of `limit` jobs.
local function browse_heads_open(base, heads, place, limit, out)
  return { base = base, heads = heads, place = place, limit = limit, out = out, at = 1, last = 0, more = true }
end

--- Those that stand before a place come next, as far as there is room; but for those that are gone.
local function browse_heads_before(merged, score, position)
  while #merged.out < 2 * merged.limit do
    if merged.at > merged.last and merged.more then browse_heads_fill(merged) end
    if merged.at > merged.last then return end
    local its = merged.found[merged.at]
    if its.score > score or its.score == score and its.position >= position then return end
    if its.value then
      merged.out[#merged.out + 1] = its.id
      merged.out[#merged.out + 1] = its.value
    end
    merged.place = browse_heads_place(its.member, its.text)
    merged.at = merged.at + 1
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
      local some, members = redis.call('ZRANGEBYSCORE', base .. 'group:' .. next_, '(' .. position, '+inf', 'WITHSCORES',
        'LIMIT', 0, room), {}
      --- @if strand
      -- those of a strand are ready, and shown before
      if string.find(next_, '^%d%.') then some = {} end
      --- @end
      for i = 1, #some, 2 do
        members[#members + 1], position = some[i], some[i + 1]
      end
      browse_heads_members(base, members, out)
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
  if group then parts[#parts + 1] = 'b' .. position .. '.' .. group end
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
  local behind = group and redis.call('ZREVRANGE', base .. 'group:' .. group, 0, 0, 'WITHSCORES')[2]
  if behind then parts[#parts + 1] = 'b' .. behind .. '.' .. group end
end
