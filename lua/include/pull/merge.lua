--- @include "queue/count"
--- @include "order/score"
--- @include "order/sort_key"
--- @include "pull/dequeue"
--- @include "schedule/member"

--- Where ready jobs stand in the lists and in a sorted set beside them: what is taken is the oldest of both.

local function merge_lists_empty(base, levels, promoted)
  local keys = {}
  for level in string.gmatch(levels, '%d+') do
    keys[#keys + 1] = base .. 'ready:' .. level
    if promoted then keys[#keys + 1] = base .. 'due:' .. level end
  end
  return #keys == 0 or redis.call('EXISTS', unpack(keys)) == 0
end

--- The first `count` leave the set, `members` = {member, score, ...}.
local function merge_set_take(heads, members, count, taken)
  if count == 0 then return end
  redis.call('ZREMRANGEBYRANK', heads, '0', string.format('%d', count - 1))
  taken.set, taken.members, taken.passed = heads, members, count
end

--- The same as `merge_heads` where all that waits stands in the set.
local function merge_set(heads, base, want, room, empty, taken)
  local sub, jobs, ids, names, bytes, tight, count = string.sub, taken.jobs, taken.ids, {}, 0, nil, 0
  local members = redis.call('ZRANGE', heads, '0', string.format('%d', want - 1), 'WITHSCORES')
  local passed = #members / 2
  for i = 1, passed do names[i] = sub(members[2 * i - 1], MEMBER_PREFIX + 1) end
  local values = redis.call('HMGET', base .. 'jobs', unpack(names))
  for i = 1, passed do
    local id, value = names[i], values[i]
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
  merge_set_take(heads, members, passed, taken)
  return jobs, ids, bytes, tight, false
end

--- Take up to `want` jobs; arguments and answers as of `dequeue_heads`, and `taken` also gets the first `passed` of the
--- `members` of that `set`, {member, score, ...}, which have left it. `heads`: the key of the sorted set, whose members
--- are those of `scheduled` and whose scores are `score_of`.
local function merge_heads(heads, base, levels, promoted, want, room, empty, taken)
  if redis.call('EXISTS', heads) == 0 then return dequeue_heads(base, levels, promoted, want, room, empty, taken) end
  if merge_lists_empty(base, levels, promoted) then return merge_set(heads, base, want, room, empty, taken) end
  local members = redis.call('ZRANGE', heads, '0', string.format('%d', want - 1), 'WITHSCORES')
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

  local names, at, last = {}, 1, #members / 2
  for i = 1, last do names[i] = string.sub(members[2 * i - 1], MEMBER_PREFIX + 1) end
  local values = redis.call('HMGET', base .. 'jobs', unpack(names))
  --- Those of the set that stand before this place.
  local function take_heads(score, position)
    while not stop and at <= last do
      local its = tonumber(members[2 * at])
      if its > score or its == score and tonumber(string.sub(members[2 * at - 1], 3, MEMBER_PREFIX)) > position then return end
      if values[at] and not take(names[at], values[at]) then return end
      at = at + 1
    end
  end

  local rounds = 0
  local function merge_list(key, level)
    while not stop and rounds < DEQUEUE_ROUNDS do
      local page = redis.call('LRANGE', key, '0', string.format('%d', want - count - 1))
      if #page == 0 then return end
      rounds = rounds + 1
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
        elseif value and not take(page[i], value) then
          break
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
  merge_set_take(heads, members, at - 1, taken)
  return jobs, ids, bytes, tight, more
end
