--- Labels make classes: jobs with equal labels stand in one sorted set, a consumer's selector is evaluated once for each
--- class, and a pull merges the classes that its consumer selects. Nothing is looked at that is not taken. A consumer
--- without a selector takes all.
--- HOOKS: admit, shelf, unblock, heads, stands, found, places, keys, meets, waiters, waits, able, tell, closing, audience, select,
---   listens, unheard, restamp, ripen
--- META: hearing
--- JOB: tags (c: the labels)
--- KEYS: classes, audiences, hears, class:<n>, interested:<a>
--- STORE: list
--- ORDER: 60
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: ttl, groups, exclusive, last_value, lifetime, ring, hold, schedules, refusals, flows, limits, front, shard,
---   shares
--- @include "order/standing"
--- @include "consumer/most"

--- `classes`: labels -> number of a class that jobs stand in. `class:<n>`: its ready jobs, members as of `scheduled`, by
--- `score_of`. `audiences`: selector -> number, from 1; 0 are the consumers without one, which hear all. `hears`: number
--- of an audience -> numbers of the classes that it selects, ",1,4,". `interested:<a>`: those of `interested` that are of
--- this audience. What has no labels noted (it was enqueued before the queue had this policy) is in the lists, as class
--- "0", and only consumers without a selector take it: of labels that are not known nothing is true.

local SELECTORS_CLASSES, SELECTORS_AUDIENCES = 64, 64

--- Of this call. `fresh`: class -> jobs that became ready; `mine`: {classes of a consumer}, where the call is about one.
local SELECTORS = { fresh = {}, fresh_any = false }

--- The labels of a job by its tags, as they are noted; nil where they are not known.
local function selectors_labels(job)
  return job.tags and string.match(job.tags, '|c([^|]*)')
end

--- Labels -> number of class.
local function selectors_classes(base)
  if not SELECTORS.classes then
    local flat, classes = redis.call('HGETALL', base .. 'classes'), {}
    for i = 1, #flat, 2 do classes[flat[i]] = flat[i + 1] end
    SELECTORS.classes = classes
  end
  return SELECTORS.classes
end

--- Number of audience -> ",1,4,", the classes that it selects.
local function selectors_hears(base)
  if not SELECTORS.hears then
    local flat, hears = redis.call('HGETALL', base .. 'hears'), {}
    for i = 1, #flat, 2 do hears[flat[i]] = flat[i + 1] end
    SELECTORS.hears = hears
  end
  return SELECTORS.hears
end

--- Who waits in which audience is known from the first call on that asks; those that waited before select nothing.
local function selectors_open(base)
  if SELECTORS.open then return end
  SELECTORS.open = true
  if redis.call('HGET', base .. 'meta', 'hearing') == '1' then return end
  redis.call('HSET', base .. 'meta', 'hearing', '1')
  redis.call('ZUNIONSTORE', base .. 'interested:0', '1', base .. 'interested')
end

--- The number of a consumer's audience.
local function selectors_of(base, consumer)
  return redis.call('HGET', base .. 'consumer:' .. consumer, 'audience') or '0'
end

--- The classes that an audience takes from: numbers, and "0" for the lists.
local function selectors_hearable(base, audience)
  local heard = {}
  if audience ~= '0' then
    for class in string.gmatch(selectors_hears(base)[audience] or '', '%d+') do heard[#heard + 1] = class end
    return heard
  end
  heard[1] = '0'
  for _, class in pairs(selectors_classes(base)) do heard[#heard + 1] = class end
  return heard
end

--- Whether an audience takes from a class.
local function selectors_hear(base, audience, class)
  return audience == '0' or string.find(selectors_hears(base)[audience] or '', ',' .. class .. ',', 1, true) ~= nil
end

--- The numbers of the audiences that take jobs with these labels, also where they are no class yet. nil: not known.
local function selectors_hearers(base, labels)
  local class, hearers = labels and selectors_classes(base)[labels] or '0', { '0' }
  if labels and class == '0' then
    --- @include "selector/evaluate"
    local known, flat = evaluate_labels(labels), redis.call('HGETALL', base .. 'audiences')
    for i = 1, #flat, 2 do
      if evaluate(flat[i], known) then hearers[#hearers + 1] = flat[i + 1] end
    end
    return hearers
  end
  for audience in pairs(selectors_hears(base)) do
    if class ~= '0' and selectors_hear(base, audience, class) then hearers[#hearers + 1] = audience end
  end
  return hearers
end

--- `run`: of an enqueue. A set of labels that is not known needs a place among the classes: one that is free, or that of
--- a class without ready jobs.
local function selectors_admit(queue, run)
  local labels = string.match(run.more, '|c([^|~]*)')
  if not labels then return end
  if #labels > 384 or string.find(labels, '[^%w%%_:+-]') then
    return redis.error_reply('BADARGS enqueue: labels that are too long or not escaped')
  end
  run.tags, run.placed = run.tags .. '|c' .. labels, true
  run.more = string.gsub(run.more, '|c[^|~]*', '', 1)
  local classes = selectors_classes(queue.base)
  queue.wanted = queue.wanted or { count = 0 }
  if queue.wanted[labels] then return end
  queue.wanted[labels], queue.wanted.count = true, queue.wanted.count + 1
  if classes[labels] then return end
  local used = queue.wanted.count
  for known, class in pairs(classes) do
    if not queue.wanted[known] then used = used + redis.call('EXISTS', queue.base .. 'class:' .. class) end
  end
  if used > SELECTORS_CLASSES then
    return redis.error_reply('CLASSES jobs with ' .. SELECTORS_CLASSES .. ' different sets of labels wait in this queue')
  end
end

--- The numbers of the classes of these labels {labels = true}; those that are not known become classes: of a number that
--- is free, or that of a class without ready jobs. Where there is none, jobs stand with those of which nothing is known.
local function selectors_made(base, wanted)
  local classes, used, count = selectors_classes(base), {}, 0
  for _, class in pairs(classes) do
    used[class], count = true, count + 1
  end
  local missing = {}
  for labels in pairs(wanted) do
    if not classes[labels] then missing[#missing + 1] = labels end
  end
  if #missing == 0 then return classes end
  table.sort(missing)
  --- @include "selector/evaluate"
  local hears, flat = selectors_hears(base), redis.call('HGETALL', base .. 'audiences')
  local idle
  if count + #missing > SELECTORS_CLASSES then
    idle = {}
    for labels, class in pairs(classes) do
      if not wanted[labels] and redis.call('EXISTS', base .. 'class:' .. class) == 0 then idle[#idle + 1] = labels end
    end
    table.sort(idle)
  end
  local next_ = 1
  for _, labels in ipairs(missing) do
    local class
    if count < SELECTORS_CLASSES then
      while used[string.format('%d', next_)] do next_ = next_ + 1 end
      class, count = string.format('%d', next_), count + 1
    elseif idle and idle[1] then
      local old = table.remove(idle, 1)
      class = classes[old]
      classes[old] = nil
      redis.call('HDEL', base .. 'classes', old)
    end
    if class then
      used[class], classes[labels] = true, class
      redis.call('HSET', base .. 'classes', labels, class)
      local known, word = evaluate_labels(labels), ',' .. class .. ','
      for i = 1, #flat, 2 do
        local audience = flat[i + 1]
        local heard = string.gsub(hears[audience] or ',', word, ',')
        if evaluate(flat[i], known) then heard = heard .. class .. ',' end
        if heard ~= hears[audience] then
          hears[audience] = heard
          redis.call('HSET', base .. 'hears', audience, heard)
        end
      end
    end
  end
  return classes
end

local function selectors_fresh(class, count)
  SELECTORS.fresh[class] = (SELECTORS.fresh[class] or 0) + count
  SELECTORS.fresh_any = true
end

--- These jobs ({id=, level=, position=, due=, tags=, ...}) are to be ready: new, due, or back from a consumer. Those of
--- a class go to it; the others are returned.
local function selectors_shelf(base, _, jobs)
  local wanted, mine, rest = {}, {}, {}
  for _, job in ipairs(jobs) do
    local labels = selectors_labels(job)
    if labels then
      wanted[labels] = true
      mine[#mine + 1] = { job, labels }
    else
      rest[#rest + 1] = job
    end
  end
  if #mine > 0 then
    local classes, members = selectors_made(base, wanted), {}
    for _, one in ipairs(mine) do
      local job, class = one[1], classes[one[2]]
      if class then
        local of_class = members[class] or {}
        members[class] = of_class
        of_class[#of_class + 1], of_class[#of_class + 2] = standing_of(job)
      else
        rest[#rest + 1] = job
      end
    end
    for class, of_class in pairs(members) do
      redis.call('ZADD', base .. 'class:' .. class, unpack(of_class))
      selectors_fresh(class, #of_class / 2)
    end
  end
  if #rest > 0 then selectors_fresh('0', #rest) end
  return rest
end

--- Where a ready job with labels stands; nil where it is in a list.
local function selectors_stands(base, job)
  local labels = selectors_labels(job)
  local class = labels and selectors_classes(base)[labels]
  local key = class and base .. 'class:' .. class
  return key and redis.call('ZSCORE', key, (select(2, standing_of(job)))) and key
end

--- A job that waits leaves: out of its place. Answers `ready`; nil where it stands in no class.
local function selectors_unblock(base, _, job)
  local key = selectors_stands(base, job)
  if not key then return nil end
  redis.call('ZREM', key, (select(2, standing_of(job))))
  return 'ready'
end

--- Where ready jobs stand beside the lists: the classes that a consumer takes from, nil: all. `lists`: whether it takes
--- from those too. `how` = {ranked=, mine=}: it takes now, not from those that others are ahead in, of which `outranked`
--- says whether there are such; of the consumer that this call is about, if there is one.
local function selectors_heads(base, consumer, how)
  local heads = { lists = false }
  local heard = how and how.mine and SELECTORS.mine
    or selectors_hearable(base, consumer and consumer.name and selectors_of(base, consumer.name) or '0')
  if how and how.ranked then
    --- @include "selector/ranks"
    heard, heads.outranked = ranks_left(base, consumer, heard)
  end
  for _, class in ipairs(heard) do
    if class == '0' then heads.lists = true else heads[#heads + 1] = base .. 'class:' .. class end
  end
  --- @if beside
  if heads.lists then
    --- @each beside(base, heads)
  end
  --- @end
  return heads
end

--- Where this job is, for who checks: into `found` goes each place and 1.
local function selectors_found(base, job, found)
  local member = select(2, standing_of(job))
  for _, class in pairs(selectors_classes(base)) do
    if redis.call('ZSCORE', base .. 'class:' .. class, member) then
      found[#found + 1] = 'class:' .. class
      found[#found + 1] = 1
    end
  end
  return found
end

local function selectors_places(_, found)
  for _, key in ipairs({ 'classes', 'audiences', 'hears' }) do found[#found + 1] = { key, 'hash' } end
  found[#found + 1] = { 'interested:0', 'zset' }
  return found
end

--- Those of its keys that have numbers.
local function selectors_keys(base, found)
  for _, class in pairs(selectors_classes(base)) do found[#found + 1] = { 'class:' .. class, 'zset' } end
  for audience in pairs(selectors_hears(base)) do found[#found + 1] = { 'interested:' .. audience, 'zset' } end
  return found
end

--- What a step that makes jobs with these values, or tags, ready may meet: into `found`.
local function selectors_meets(values, found, base)
  local classes, seen = selectors_classes(base), {}
  for audience in pairs(selectors_hears(base)) do seen['interested:' .. audience] = true end
  for _, value in ipairs(values) do
    local labels = value and (string.match(value, '^[%d,-]*|c([^|;]*)'))
    if labels and classes[labels] then
      seen['class:' .. classes[labels]] = true
    elseif labels then
      return selectors_keys(base, selectors_places(nil, found))
    end
  end
  for key in pairs(seen) do found[#found + 1] = { key, 'zset' } end
  found[#found + 1] = { 'interested:0', 'zset' }
  return found
end

--- The consumers that wait and may be notified first: into `names`.
local function selectors_waiters(base, names)
  local function add(audience)
    for _, name in ipairs(redis.call('ZRANGE', base .. 'interested:' .. audience, '0', '31')) do names[#names + 1] = name end
  end
  add('0')
  for audience in pairs(selectors_hears(base)) do add(audience) end
end

--- A consumer waits from now on, with this score in `interested`; without one: not any more.
local function selectors_waits(base, consumer, score)
  selectors_open(base)
  local key = base .. 'interested:' .. selectors_of(base, consumer)
  local done = score and redis.pcall('ZADD', key, score, consumer) or not score and redis.pcall('ZREM', key, consumer)
  return type(done) == 'table' and done or nil
end

--- What follows is about the work of this consumer; false: of all.
local function selectors_audience(base, consumer)
  SELECTORS.mine = consumer and selectors_hearable(base, selectors_of(base, consumer)) or nil
end

--- An error reply where a queue has no room for this selector, or it makes no expression; else nil.
local function selectors_select(base, selector)
  --- @include "selector/evaluate"
  if selector == '' then return nil end
  if #selector > 16384 or evaluate(selector, {}) == nil then
    return redis.error_reply('BADARGS register: a selector that cannot be read')
  end
  if redis.call('HEXISTS', base .. 'audiences', selector) == 1
    or redis.call('HLEN', base .. 'audiences') < SELECTORS_AUDIENCES then
    return nil
  end
  local used = {}
  for _, name in ipairs(redis.call('ZRANGE', base .. 'consumers', 0, CONSUMERS_LAST)) do used[selectors_of(base, name)] = true end
  SELECTORS.used = used
  for audience = 1, SELECTORS_AUDIENCES do
    if not used[string.format('%d', audience)] then return nil end
  end
  return redis.error_reply('AUDIENCES consumers with ' .. SELECTORS_AUDIENCES .. ' different selectors are registered')
end

--- A consumer with this selector is registered: its hash is there. `select` was asked before.
local function selectors_listens(base, consumer, selector)
  selectors_open(base)
  if selector == '' then return end
  local audience = redis.call('HGET', base .. 'audiences', selector)
  if not audience then
    --- @include "selector/evaluate"
    local flat, used = redis.call('HGETALL', base .. 'audiences'), {}
    for i = 1, #flat, 2 do
      -- one that no consumer is of any more gives way to others where numbers run out
      if #flat / 2 < SELECTORS_AUDIENCES or SELECTORS.used[flat[i + 1]] then
        used[flat[i + 1]] = true
      else
        redis.call('HDEL', base .. 'audiences', flat[i])
        redis.call('HDEL', base .. 'hears', flat[i + 1])
      end
    end
    local number = 1
    while used[string.format('%d', number)] do number = number + 1 end
    audience = string.format('%d', number)
    local heard = ','
    for labels, class in pairs(selectors_classes(base)) do
      if evaluate(selector, evaluate_labels(labels)) then heard = heard .. class .. ',' end
    end
    redis.call('HSET', base .. 'audiences', selector, audience)
    redis.call('HSET', base .. 'hears', audience, heard)
    SELECTORS.hears = nil
  end
  redis.call('HSET', base .. 'consumer:' .. consumer, 'audience', audience)
end

--- The queue's kind changes: who waits where is found anew, should it have this policy again.
local function selectors_restamp(base)
  redis.call('HDEL', base .. 'meta', 'hearing')
  for audience in pairs(selectors_hears(base)) do redis.call('DEL', base .. 'interested:' .. audience) end
  redis.call('DEL', base .. 'classes', base .. 'audiences', base .. 'hears', base .. 'interested:0')
end
