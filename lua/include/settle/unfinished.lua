--- @include "finish/unfinished"
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
    if not delay or not (place == 'old' or place == 'head' or place == 'tail' 
      or (place == 'park' or place == 'aside') and delay > 0)
      or before ~= '' and not tonumber(before) then
      return redis.error_reply('BADARGS settle: a retry needs a delay in ms, a place and a number of deliveries')
    end
    tail = tail or place == 'tail' and delay <= 0
    add({ verb = 'retry', delay = delay, place = place, counts = arguments[at + 3] ~= '0', before = tonumber(before),
      error_ = arguments[at + 5] })
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

--- Each goes its way; `batch`, `rows`: of the whole call, whose rows come before those that are written here. Returns
--- how many became ready again.
local function settle_unfinished(base, queue, me, said, batch, rows)
  local gathered = unfinished_open(base, queue, me.name, me.worker)
  for i = said.acked + said.done + 1, said.total do
    local id, fate = said.ids[i], said.fates[i]
    if id and fate.job then
      fate.job.id = id
      unfinished_add(gathered, fate.job, fate)
    end
  end
  local ready = unfinished_close(gathered)
  history_batch(base, queue, batch, rows, said)
  history_lines_write(base, queue.history_max, gathered.lines)
  -- this consumer may be the one that was told
  if queue.watched then me.state = redis.call('HGET', base .. 'consumer:' .. me.name, 'state') end
  return ready
end
