--- @include "order/sort_key"

--- Jobs that leave a consumer in another order than they came. Mostly they are near an end: what was begun last,
--- or what was not begun at all. So both ends are looked at first. What lies deeper is looked for where its position
--- says, for jobs are mostly taken in their order, and else by Redis itself.

--- Elements that the first look takes off each end at the least, how often it looks (twice as much the next time), and
--- how many jobs are searched for before all of the list is read: at all, and by Redis itself.
local REMOVE_LOOK, REMOVE_ENDS, REMOVE_SEARCHES, REMOVE_LONG = 64, 2, 16, 4

--- Where this job stands in the list `key` from index `first` to `last`, by halves; nil where that does not find it.
local function held_remove_search(base, key, id, first, last)
  local wanted = sort_key_read(redis.call('HGET', base .. 'jobs', id))
  while wanted and first < last do
    local middle = math.floor((first + last) / 2)
    local other = sort_key_read(redis.call('HGET', base .. 'jobs', redis.call('LINDEX', key, middle)))
    if not other then return nil end
    if sort_key_before(other, wanted) then first = middle + 1 else last = middle end
  end
  return redis.call('LINDEX', key, first) == id and first or nil
end

--- Which of `ids` this consumer holds, and where: {head=, tail=, deep=}: of those near an end how many elements reach
--- as far as the deepest of them, and {index, id} of the others; and a table id -> true.
local function held_remove_find(base, consumer, ids)
  local key, wanted, left = base .. 'held:' .. consumer, {}, 0
  for _, id in ipairs(ids) do
    if not wanted[id] then
      wanted[id] = true
      left = left + 1
    end
  end
  local mine, where = {}, { head = 0, tail = 0, deep = {} }
  local function found(id)
    if not wanted[id] then return false end
    wanted[id] = nil
    mine[id] = true
    left = left - 1
    return true
  end
  local length, step, head, tail = redis.call('LLEN', key), math.max(REMOVE_LOOK, #ids), 0, 0
  for _ = 1, REMOVE_ENDS do
    local first = math.min(step, length - head - tail)
    if left == 0 or first <= 0 then break end
    for _, id in ipairs(redis.call('LRANGE', key, head, head + first - 1)) do
      head = head + 1
      if found(id) then where.head = head end
    end
    local last = math.min(step, length - head - tail)
    if left > 0 and last > 0 then
      local some = redis.call('LRANGE', key, -tail - last, -tail - 1)
      for i = #some, 1, -1 do
        tail = tail + 1
        if found(some[i]) then where.tail = tail end
      end
    end
    step = 2 * step
  end
  -- jobs that came together leave together: where one is, the others are
  local searches, long = 0, 0
  for _, id in ipairs(ids) do
    if left == 0 or head + tail >= length or searches == REMOVE_SEARCHES or long == REMOVE_LONG then
      break
    end
    if wanted[id] then
      searches = searches + 1
      local at = held_remove_search(base, key, id, head, length - tail - 1)
      if not at then
        long = long + 1
        at = redis.call('LPOS', key, id)
      end
      if at then
        local from = math.max(head, at - #ids)
        local some = redis.call('LRANGE', key, from, math.min(at + #ids, length - tail - 1))
        for i = 1, #some do
          if found(some[i]) then where.deep[#where.deep + 1] = { from + i - 1, some[i] } end
        end
      else
        wanted[id] = nil
        left = left - 1
      end
    end
  end
  while left > 0 and head + tail < length do
    for _, id in ipairs(redis.call('LRANGE', key, head, math.min(head + 999, length - tail - 1))) do
      if found(id) then where.deep[#where.deep + 1] = { head, id } end
      head = head + 1
    end
  end
  return mine, where
end

--- Put the elements of `some` that are not `gone` back: it was popped, so its last one is pushed first.
local function held_remove_restore(key, push, some, gone)
  local rest = {}
  for i = #some, 1, -1 do
    if not gone[some[i]] then rest[#rest + 1] = some[i] end
  end
  for i = 1, #rest, 1000 do redis.call(push, key, unpack(rest, i, math.min(i + 999, #rest))) end
end

--- Take `gone` (id -> true) off this consumer; `where` is what `held_remove_find` said of them and perhaps of some that
--- stay. To be called before the list changes. First write: frees (README).
local function held_remove(base, consumer, gone, where)
  local key = base .. 'held:' .. consumer
  if #where.deep > 0 then
    redis.call('HDEL', base .. 'meta', 'oom')
    local marked, first, last = 0, math.huge, 0
    for _, one in ipairs(where.deep) do
      if gone[one[2]] then
        -- no id is empty: what is marked goes in one pass
        redis.call('LSET', key, one[1], '')
        marked, first, last = marked + 1, math.min(first, one[1]), math.max(last, one[1])
      end
    end
    -- from the end that is nearer to all of them: the pass is over with the last one
    local length = redis.call('LLEN', key)
    if marked > 0 then redis.call('LREM', key, length - first < last and -marked or marked, '') end
  end
  if where.head > 0 then held_remove_restore(key, 'LPUSH', redis.call('LPOP', key, where.head), gone) end
  if where.tail > 0 then held_remove_restore(key, 'RPUSH', redis.call('RPOP', key, where.tail), gone) end
end
