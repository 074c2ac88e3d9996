--- @include "finish/unfinished"
--- @include "finish/attempt"
--- @include "queue/sound_type"
--- @one rank
--- @include "history/batch"
--- @include "history/lines"

--- The jobs of a settle that did not end: retry, reject and release.

--- Read what becomes of them, and the jobs themselves: into `said.fates`, by their place in `said.ids`. Returns an
--- error reply, or nil.
local function settle_unfinished_read(base, said, arguments, at, retry, reject, release)
  local ids, fates, asked, tail = said.ids, {}, {}, false
  local function add(fate)
    ids[#ids + 1] = arguments[at]
    asked[#asked + 1] = arguments[at]
    fates[#ids] = fate
  end
  for _ = 1, retry do
    local delay, place, before = tonumber(arguments[at + 1]), arguments[at + 2], arguments[at + 4]
    --- @if refuse
    local elsewhere = place == 'elsewhere' and delay == 0 and arguments[at + 3] == '0'
    if elsewhere then place = 'old' end
    --- @end
    if not delay or not (place == 'old' or place == 'head' or place == 'tail' 
      or (place == 'park' or place == 'aside') and delay > 0)
      or before ~= '' and not tonumber(before) then
      return redis.error_reply('BADARGS settle: a retry needs a delay in ms, a place and a number of deliveries')
    end
    tail = tail or place == 'tail' and delay <= 0
    add({ verb = 'retry', delay = delay, place = place, counts = arguments[at + 3] ~= '0', before = tonumber(before),
      error_ = arguments[at + 5] })
    --- @if refuse
    fates[#ids].elsewhere = elsewhere
    --- @end
    at = at + 6
  end
  for _ = 1, reject do
    add({ verb = 'reject', error_ = arguments[at + 1] })
    at = at + 2
  end
  for _ = 1, release do
    add({ verb = 'release', error_ = '' })
    at = at + 1
  end
  if tail and not string.find(redis.call('HGET', base .. 'meta', 'seq') or '', '^%d+$') then
    return redis.error_reply('DAMAGED field seq of ' .. base .. 'meta is no number: the last position that was given')
  end
  said.fates, said.in_any_order = fates, release > 0
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(asked))) do
    local fate = fates[#ids - #asked + i]
    fate.job = value and value_parse(value)
    -- said again because its reply was lost, while the job came back to this consumer: this one is not charged (H-18);
    -- one that was cancelled while others had it is nobody's
    if fate.before and value and string.byte(value) ~= 33 and fate.job.deliveries ~= fate.before then
      fate.earlier, said.in_any_order = true, true
    end
  end
end

--- Into `keys` (key -> type): those that this job's fate meets.
local function settle_unfinished_keys(base, said, fate, keys)
  local job, place, delay = fate.job, fate.place or 'old', fate.delay or 0
  if fate.verb == 'reject' or job.damaged or fate.counts and attempt_last(said.gathered, job, false) then
    keys.dead, keys.causes, keys.ended, keys.errors = 'zset', 'hash', 'hash', 'hash'
    --- @if route
    keys.outgoing, keys['outgoing:jobs'], keys.jobs = 'zset', 'hash', 'hash'
    --- @end
    return
  end
  --- @each keys.over = eligible(value_header(job), said.gathered.queue.now)
  --- @each keys.over = returned(base, job)
  --- @if refuse
  if fate.elsewhere then
    --- @each fate.cause = refuse(base, job, said.gathered.consumer, said.gathered.queue.now)
    -- it may have to be a dead letter
    keys.over = true
  end
  --- @end
  if place == 'park' then
    keys.parked = 'hash'
  elseif place ~= 'aside' and fate.error_ ~= '' then
    keys.errors = 'hash'
  end
  if delay > 0 then
    keys.scheduled = 'zset'
    if place ~= 'old' and place ~= 'head' then keys.returns_to = 'hash' end
  elseif place == 'tail' then
    keys['ready:' .. job.level], keys.browsers = 'list', 'set'
  else
    keys[string.sub(rank(base, job), #base + 1)] = 'list'
  end
end

--- An error reply where one of the keys is of another type, else nil; and whether records are to be written. `alone`:
--- nothing is pulled in the same step, so that other consumers are notified of what comes back.
local function settle_unfinished_sound(base, queue, said, alone)
  local keys, names = { history = 'stream', ended = said.acked + said.done > 0 and 'hash' or nil, errors = nil,
    scheduled = nil, dead = nil, causes = nil }, {}
  for i = said.acked + said.done + 1, said.total do
    if said.fates[i].job then settle_unfinished_keys(base, said, said.fates[i], keys) end
  end
  --- @if eligible
  --- @include "settle/over"
  local fault = settle_over_sound(base, queue, said, keys)
  if fault then return fault end
  --- @end
  --- @if trim
  keys.over = true
  --- @include "settle/over"
  local fault = settle_over_sound(base, queue, said, keys)
  if fault then return fault end
  --- @end
  --- @if refuse
  --- @include "settle/over"
  local fault = settle_over_sound(base, queue, said, keys)
  if fault then return fault end
  --- @end
  --- @if returned
  --- @include "settle/over"
  local fault = settle_over_sound(base, queue, said, keys)
  if fault then return fault end
  --- @end
  --- @if entered
  local places = {}
  --- @each places = places('', places)
  for _, place in ipairs(places) do keys[place[1]] = place[2] end
  --- @end
  --- @if member
  local sets = {}
  --- @each sets = places('', sets)
  for _, place in ipairs(sets) do keys[place[1]] = place[2] end
  --- @end
  --- @if keys
  local more = {}
  --- @each more = places(queue.levels, more)
  --- @each more = keys(base, more)
  for _, place in ipairs(more) do keys[place[1]] = place[2] end
  --- @end
  for key, meant in pairs(keys) do
    local fault = sound_type(base, key, meant)
    if fault then return fault end
  end
  --- @if meets
  --- @include "queue/sound_jobs"
  local tags = {}
  for _, fate in pairs(said.fates) do tags[#tags + 1] = fate.job and fate.job.tags or false end
  local met = sound_jobs(base, tags)
  if met then return met end
  --- @end
  if not queue.quiet and not queue.paused and (alone or keys.scheduled) then
    names = redis.call('ZRANGE', base .. 'interested', '0', string.format('%d', math.min(said.total, WAKE_MAX)))
    if #names > 0 then
      names[#names + 1] = redis.call('ZREVRANGE', base .. 'interested', '0', '0')[1]
      local fault = sound_type(base, 'notified', 'zset')
      if fault then return fault end
      --- @each waiters(base, names)
      if queue.timer then names[#names + 1] = queue.timer end
      if queue.ranked then
        for _, name in ipairs(redis.call('ZRANGE', base .. 'notified', '0', WAKE_LAST)) do names[#names + 1] = name end
      end
    end
  end
  if keys.browsers then
    for _, name in ipairs(redis.call('SMEMBERS', base .. 'browsers')) do names[#names + 1] = name end
  end
  if #names > 0 then
    --- @include "queue/sound_consumers"
    local fault = sound_consumers(base, names)
    if fault then return fault end
  end
  return nil, keys.ended
end

--- Each goes its way; `batch`, `rows`: of the whole call, whose rows come before those that are written here. Returns
--- how many became ready again.
local function settle_unfinished(base, queue, me, said, batch, rows)
  local gathered = said.gathered
  for i = said.acked + said.done + 1, said.total do
    local id, fate = said.ids[i], said.fates[i]
    if id and fate.job then
      fate.job.id = id
      unfinished_add(gathered, fate.job, fate)
    end
  end
  local ready = unfinished_close(gathered)
  if rows ~= '0' then history_batch_add(base, batch, rows, said.refused) end
  history_batch_count(base, queue, rows, said)
  history_lines_write(base, queue.history_max, gathered.lines)
  --- @if trim
  queue.taker = me.name
  local left
  --- @each left = trim(base, queue)
  if left then ready = math.min(ready, left) end
  --- @end
  -- this consumer may be the one that was notified
  if queue.watched then me.state = redis.call('HGET', base .. 'consumer:' .. me.name, 'state') end
  return ready
end
