--- @include "order/lists"
--- @include "order/score"
--- @include "order/sort_key"
--- @include "pull/dequeue"
--- @include "schedule/member"
--- @hooks strand

--- What a pull takes: job by job from the strand whose start tag is the least, which moves on by what a job costs. In the
--- order of what is taken no strand is more than one job ahead of its part.

--- Among strands in the order of their tags, the next one last: behind those with the same tag.
local function shares_insert(order, strand)
  local low, high = 1, #order + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if order[middle].tag > strand.tag then low = middle + 1 else high = middle end
  end
  table.insert(order, low, strand)
end

--- The strands of a level that may have their turns while `most` jobs are taken, in their order, the next one last; how many of
--- them have heads, and whether there are more.
local function shares_order(base, level, promoted, most, time)
  local least = (9 - tonumber(level)) * SCORE_LEVEL
  local page = redis.call('ZRANGEBYSCORE', base .. 'heads', string.format('%d', least),
    '(' .. string.format('%d', least + SCORE_LEVEL), 'WITHSCORES', 'LIMIT', '0', string.format('%d', most + 1))
  local count, order, ids, names = math.min(most, #page / 2), {}, {}, {}
  if count == 0 then return order, 0, false end
  for i = 1, count do ids[i] = string.sub(page[2 * i - 1], MEMBER_PREFIX + 1) end
  local values = redis.call('HMGET', base .. 'jobs', unpack(ids))
  for i = count, 1, -1 do
    local name = values[i] and string.match(values[i], SHARES_STORED) or ''
    names[#names + 1] = name
    order[#order + 1] = { tag = tonumber(page[2 * i]) - least, score = page[2 * i], member = page[2 * i - 1], id = ids[i],
      value = values[i], name = name, strand = values[i] and level .. '.' .. name or '', used = 0, read = 0 }
  end
  local lists = lists_of(base, level, promoted)
  if redis.call('EXISTS', unpack(lists)) > 0 then
    names[#names + 1] = ''
    local served = redis.call('ZSCORE', base .. 'served:' .. level, level)
    shares_insert(order, { tag = math.max(time or 0, tonumber(served or nil) or 0), served = served, name = '', lists = lists })
  end
  shares_weights(base, names)
  return order, count, #page > 2 * most
end

--- The next job of a strand of which one was taken: false where it has none. `most`: so many may be taken, of it and of
--- `others` beside it.
local function shares_following(base, one, most, others)
  one.at = (one.at or 0) + 1
  if not one.ids or one.at > #one.ids then
    if one.over then return false end
    local page = others == 0 and most or math.min(most, math.ceil(most / (others + 1)) + 1)
    local some = redis.call('ZRANGE', base .. 'group:' .. one.strand, one.read, one.read + page - 1)
    one.read, one.over = one.read + #some, #some < page
    if #some == 0 then return false end
    one.at, one.ids = 1, {}
    for i, member in ipairs(some) do one.ids[i] = string.sub(member, MEMBER_PREFIX + 1) end
    one.values = redis.call('HMGET', base .. 'jobs', unpack(one.ids))
  end
  one.id, one.value = one.ids[one.at], one.values[one.at]
  return true
end

--- Take from the lists what is theirs before the next strand has its turn. True where the call is to take no more.
local function shares_deal_lists(base, one, next_, want, room, empty, taken)
  local tag, count, before = one.tag, 0, taken.count
  repeat
    tag, count = shares_after(tag, one.name), count + 1
  until next_ and tag >= next_.tag or before + count >= want
  -- those that were due go first
  local stop = false
  for i = #one.lists, 1, -1 do
    stop = stop or dequeue_list(base, one.lists[i], before + count, room, empty, taken)
  end
  for _ = 1, taken.count - before do
    one.time, one.tag, one.charged = one.tag, shares_after(one.tag, one.name), true
  end
  one.ended = not stop
  return taken.tight or taken.more
end

--- Take the job that a strand has first. True where the call is to take no more.
local function shares_deal_one(one, room, empty, taken)
  local value, gone = one.value, nil
  --- @if eligible
  local kept
  if value then
    kept = eligible_of({ one.id }, { value }, taken.now, taken.dropped)
    gone = kept[1] == nil
  end
  --- @end
  if value and not gone then
    if room and taken.bytes + #value > room and not (empty and taken.count == 0) then
      taken.tight = one.id
      return true
    end
    taken.count, taken.bytes = taken.count + 1, taken.bytes + #value
    taken.ids[taken.count] = one.id
    taken.jobs[2 * taken.count - 1], taken.jobs[2 * taken.count] = one.id, value
    one.time, one.tag, one.charged = one.tag, shares_after(one.tag, one.name), true
  end
  if one.used == 0 then one.first = value end
  one.used = one.used + 1
  return false
end

--- Those that strands gave away leave, and each strand gets its next head, at its tag. `dealt`: what was done is noted in it
--- before it is done, for `undeal`. Returns whether a strand has one.
local function shares_settle(base, level, touched, dealt)
  local strands, gone, open, said, over, served, behind = {}, {}, {}, {}, {}, {}, {}
  local number, lined = tonumber(level), 0
  for i, one in ipairs(touched) do strands[i] = one.strand end
  local known = redis.call('ZMSCORE', base .. 'blocked', unpack(strands))
  for i, one in ipairs(touched) do
    local popped = known[i] and redis.call('ZPOPMIN', base .. 'group:' .. one.strand, one.used) or {}
    local count = #popped / 2
    if count > 0 then
      dealt.popped[one.strand] = popped
      lined, behind[#behind + 1] = lined + count, one.strand
    end
    gone[#gone + 1] = one.member
    if count == one.used then
      open[#open + 1] = shares_score(number, one.tag)
      open[#open + 1] = popped[2 * count - 1]
      said[#said + 1] = one.strand
      said[#said + 1] = shares_said(tonumber(popped[2 * count]), popped[2 * count - 1])
    else
      over[#over + 1] = one.strand
      if one.strand ~= '' and (one.charged or one.tag > dealt.time) then
        served[#served + 1] = string.format('%d', one.tag)
        served[#served + 1] = one.strand
      end
    end
  end
  redis.call('ZREM', base .. 'heads', unpack(gone))
  dealt.open, dealt.over = open, over
  if #over > 0 then redis.call('HDEL', base .. 'strands', unpack(over)) end
  if #open > 0 then
    redis.call('ZADD', base .. 'heads', unpack(open))
    redis.call('HSET', base .. 'strands', unpack(said))
  end
  if #served > 0 then redis.call('ZADD', base .. 'served:' .. level, unpack(served)) end
  shares_emptied(base, behind)
  shares_line(base, number, -lined)
  dealt.lined = lined
  return #open > 0
end

--- Take from the strands of a level. True where the call is to take no more.
local function shares_deal_level(base, queue, level, promoted, want, room, empty, taken)
  local most = want - taken.count
  local before = shares_time(base, level)
  local order, heads, others = shares_order(base, level, promoted, most, before)
  if heads == 0 then
    if before then queue.dealt[level] = { rest = true } end
    local lists, done = lists_of(base, level, promoted), false
    for i = #lists, 1, -1 do done = done or dequeue_list(base, lists[i], want, room, empty, taken) end
    return done
  end
  redis.call('ZCARD', base .. 'served:' .. level)
  local dealt = { touched = {}, popped = {}, before = before, time = before or 0 }
  local stop, lists, touched, start = false, nil, dealt.touched, taken.count
  while not stop and #order > 0 and taken.count < want do
    local one = table.remove(order)
    if one.lists then
      lists = one
      stop = shares_deal_lists(base, one, order[#order], want, room, empty, taken)
      if not one.ended then shares_insert(order, one) end
    elseif one.used == 0 or shares_following(base, one, want - taken.count, #order) then
      stop = shares_deal_one(one, room, empty, taken)
      if one.used == 1 and not one.seen then
        one.seen = true
        touched[#touched + 1] = one
      end
      -- whether it has another one is looked at when its turn comes
      if stop then table.insert(order, one) else shares_insert(order, one) end
    end
    if one.time then dealt.time = math.max(dealt.time, one.time) end
    --- @if eligible
    if #taken.dropped >= 2 * DEQUEUE_DROPPED then taken.more, stop = true, true end
    --- @end
  end
  -- who comes next has not been looked at
  if not stop and taken.count < want and others then taken.more, stop = true, true end
  taken.dealt = taken.dealt or {}
  taken.dealt[level], dealt.lists = dealt, lists
  local waits = others
  if lists and not lists.ended then waits = redis.call('EXISTS', unpack(lists.lists)) > 0 or waits end
  for _, one in ipairs(order) do waits = waits or not one.seen and one ~= lists end
  if #touched > 0 then waits = shares_settle(base, level, touched, dealt) or waits end
  if lists and lists.charged then
    redis.call('ZADD', base .. 'served:' .. level, string.format('%d', lists.tag), level)
  end
  if taken.count > start then
    redis.call('HSET', base .. 'turns', level, string.format('%d', dealt.time))
  end
  dealt.count, dealt.rest = taken.count - start, not waits
  queue.dealt[level] = dealt
  return stop or taken.count >= want
end

--- Take up to `want` jobs; arguments as of `dequeue_heads`, what is taken goes into `taken`.
local function shares_deal(base, queue, levels, promoted, want, room, empty, taken)
  if redis.call('EXISTS', base .. 'heads', base .. 'turns') == 0 then
    return dequeue_heads(base, levels, promoted, want, room, empty, taken)
  end
  -- a key of another type is met here, where nothing is changed yet
  for _, key in ipairs({ 'strands', 'lined' }) do redis.call('HLEN', base .. key) end
  queue.dealt = {}
  for level in string.gmatch(levels, '%d+') do
    if shares_deal_level(base, queue, level, promoted, want, room, empty, taken) then break end
  end
end
