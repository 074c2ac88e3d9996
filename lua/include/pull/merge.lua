--- @include "queue/count"
--- @include "order/member"
--- @include "order/score"
--- @include "order/sort_key"
--- @include "pull/dequeue"

--- @hooks eligible

--- Where ready jobs stand in the lists and in sorted sets beside them: what is taken is the oldest of all.

--- @if eligible
--- The value, or nil where the job must not be delivered any more: it is one of those that are `dropped`.
local function merge_eligible(taken, id, value)
  local outcome
  --- @each outcome = eligible(value, taken.now)
  if not outcome then return value end
  taken.dropped[#taken.dropped + 1] = id
  taken.dropped[#taken.dropped + 1] = value
end
--- @end

local function merge_lists_empty(base, levels, promoted)
  local keys = {}
  for level in string.gmatch(levels, '%d+') do
    keys[#keys + 1] = base .. 'ready:' .. level
    if promoted then keys[#keys + 1] = base .. 'due:' .. level end
  end
  return #keys == 0 or redis.call('EXISTS', unpack(keys)) == 0
end

--- The best `want` members of the sets `keys`, as {member, score, ...}; `owners`: of which of them each is, nil where
--- there is one. `keys.most`: no more of the first set than that.
local function merge_members(keys, want)
  if #keys == 1 then return redis.call('ZRANGE', keys[1], '0', string.format('%d', want - 1), 'WITHSCORES') end
  local call, page = redis.call, want == 1 and 1 or math.min(want, math.ceil(2 * want / #keys) + 2)
  local pages, at, seen, scores, open = {}, {}, {}, {}, {}
  local function fill(key)
    local last = seen[key] + page - 1
    --- @if expose
    if key == 1 and keys.most then last = math.min(last, keys.most - 1) end
    if last < seen[key] then return false end
    --- @end
    local some = call('ZRANGE', keys[key], string.format('%d', seen[key]), string.format('%d', last), 'WITHSCORES')
    pages[key], at[key], seen[key] = some, 1, seen[key] + page
    scores[key] = tonumber(some[2])
    return some[1] ~= nil
  end
  for key = 1, #keys do
    seen[key] = 0
    if fill(key) then open[#open + 1] = key end
  end
  local members, owners, count = {}, {}, 0
  while count < want and open[1] do
    local best, place = open[1], 1
    for i = 2, #open do
      local key = open[i]
      if scores[key] < scores[best]
        or scores[key] == scores[best] and member_before(pages[key][at[key]], pages[best][at[best]]) then
        best, place = key, i
      end
    end
    count = count + 1
    local some, i = pages[best], at[best]
    members[2 * count - 1], members[2 * count], owners[count] = some[i], some[i + 1], best
    at[best] = i + 2
    if some[i + 2] then
      scores[best] = tonumber(some[i + 3])
    elseif i + 1 < 2 * page or not fill(best) then
      table.remove(open, place)
    end
  end
  return members, owners
end

--- The first `count` leave their sets, `members` = {member, score, ...}.
local function merge_set_take(keys, members, owners, count, taken)
  if count == 0 then return end
  taken.sets, taken.members, taken.owners, taken.passed = keys, members, owners, count
  if not owners then
    redis.call('ZREMRANGEBYRANK', keys[1], '0', string.format('%d', count - 1))
    return
  end
  local counts = {}
  for i = 1, count do counts[owners[i]] = (counts[owners[i]] or 0) + 1 end
  for owner, its in pairs(counts) do
    redis.call('ZREMRANGEBYRANK', keys[owner], '0', string.format('%d', its - 1))
  end
end

--- The same as `merge_heads` where all that waits stands in the sets.
local function merge_set(heads, base, want, room, empty, taken)
  local jobs, ids, names, bytes, tight, count = taken.jobs, taken.ids, {}, 0, nil, 0
  local members, owners = merge_members(heads, want)
  local passed = #members / 2
  for i = 1, passed do names[i] = member_id(members[2 * i - 1]) end
  local values = redis.call('HMGET', base .. 'jobs', unpack(names))
  for i = 1, passed do
    local id, value = names[i], values[i]
    --- @if eligible
    value = value and merge_eligible(taken, id, value)
    --- @end
    if value then
      bytes = bytes + #value
      if room and bytes > room and not (empty and count == 0) then
        bytes, tight, passed = bytes - #value, id, i - 1
        break
      end
      count = count + 1
      ids[count] = id
      jobs[2 * count - 1] = id
      jobs[2 * count] = value
    end
  end
  merge_set_take(heads, members, owners, passed, taken)
  -- some of them ended instead: who comes next has not been looked at
  return jobs, ids, bytes, tight, passed == want and count < want
end

--- Take up to `want` jobs; arguments and answers as of `dequeue_heads`, and `taken` also gets the first `passed` of the
--- `members` {member, score, ...} of those `sets`, which have left them; `owners` says of which set each was. `heads`: the
--- keys of the sorted sets, see `order/member` and `order/score`; `lists` in it: whether
--- the lists are taken from too.
local function merge_heads(heads, base, levels, promoted, want, room, empty, taken)
  if not heads.lists then levels = '' end
  if #heads == 0 or redis.call('EXISTS', unpack(heads)) == 0 then
    return dequeue_heads(base, levels, promoted, want, room, empty, taken)
  end
  if merge_lists_empty(base, levels, promoted) then return merge_set(heads, base, want, room, empty, taken) end
  local members, owners = merge_members(heads, want)
  local jobs, ids, count, bytes, tight, stop = taken.jobs, taken.ids, 0, 0, nil, false
  local function take(id, value)
    if room and bytes + #value > room and not (empty and count == 0) then
      tight, stop = id, true
      return false
    end
    count, bytes = count + 1, bytes + #value
    ids[count], jobs[2 * count - 1], jobs[2 * count] = id, id, value
    stop = count == want
    return true
  end

  local names, at, last, cut = {}, 1, #members / 2, false
  for i = 1, last do names[i] = member_id(members[2 * i - 1]) end
  local values = redis.call('HMGET', base .. 'jobs', unpack(names))
  --- Those of the set that stand before this place.
  local function take_heads(score, position)
    while not stop and at <= last do
      local its = tonumber(members[2 * at])
      if its > score or its == score and member_position(members[2 * at - 1]) > position then return end
      local value = values[at]
      --- @if eligible
      value = value and merge_eligible(taken, names[at], value)
      --- @end
      if value and not take(names[at], value) then return end
      at = at + 1
    end
    -- some of them ended instead: who comes next has not been looked at, and nobody overtakes him
    if not stop and at > last and last == want then stop, cut = true, true end
  end

  local rounds = 0
  local function merge_list(key, level)
    while not stop and rounds < DEQUEUE_ROUNDS do
      local page = redis.call('LRANGE', key, '0', string.format('%d', want - count - 1))
      if #page == 0 then return end
      rounds = rounds + 1
      --- @if eligible
      if #taken.dropped >= 2 * DEQUEUE_DROPPED then rounds = DEQUEUE_ROUNDS end
      --- @end
      local passed, marked = 0, nil
      for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(page))) do
        local place = sort_key_read(value)
        if place then take_heads(score_of(level, place.due, place.position), place.position) end
        if stop then break end
        if value and string.byte(value) == 33 then
          marked, taken.marks = marked or {}, taken.marks or {}
          marked[#marked + 1] = page[i]
          taken.marks[#taken.marks + 1] = page[i]
          taken.marks[#taken.marks + 1] = value
        else
          --- @if eligible
          value = value and merge_eligible(taken, page[i], value)
          --- @end
          if value and not take(page[i], value) then break end
        end
        passed = i
        if stop then break end
      end
      if passed > 0 then
        redis.call('LTRIM', key, passed, -1)
        taken.rounds = taken.rounds + 1
        taken[2 * taken.rounds - 1], taken[2 * taken.rounds] = key, { unpack(page, 1, passed) }
      end
      if marked then
        redis.call('HDEL', base .. 'jobs', unpack(marked))
        taken.unmarked = #taken.marks
        count_up(base .. 'meta', 'marked', -#marked)
      end
    end
  end
  for level in string.gmatch(levels, '%d+') do
    if promoted then merge_list(base .. 'due:' .. level, tonumber(level)) end
    merge_list(base .. 'ready:' .. level, tonumber(level))
  end
  local more = rounds >= DEQUEUE_ROUNDS and not stop
  if not more then take_heads(math.huge, 0) end
  more = more or cut
  merge_set_take(heads, members, owners, at - 1, taken)
  return jobs, ids, bytes, tight, more
end
