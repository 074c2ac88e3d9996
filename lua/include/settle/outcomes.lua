--- @include "queue/keep"
--- @include "held/take_in_order"
--- @include "result/records"
--- @include "history/batch"

--- What a settle says of its jobs: read, taken off the consumer, and those that are done ended.

--- {ids=, total=, acked=, done=, results=, fates=, stale=, refused=}, or nil and an error reply. `arguments` hold the
--- items from `first` on. `results`: index in `arguments` of the first job with a result. `fates`: what becomes of
--- those that did not end, by their place in `ids`; nil where there is none.
local function outcomes_read(base, queue, me, groups, arguments, first)
  local acked, done, others = tonumber(groups), 0, 0
  local retry, reject, release = 0, 0, 0
  if not acked then
    acked, done, retry, reject, release = string.match(groups, '^(%d+),(%d+),(%d+),(%d+),(%d+)$')
    acked, done, retry = tonumber(acked), tonumber(done), tonumber(retry)
    reject, release = tonumber(reject), tonumber(release)
    others = acked and retry + reject + release
  end
  if not acked or #arguments ~= first - 1 + acked + 3 * done + 6 * retry + 2 * reject + release then
    return nil, redis.error_reply('BADARGS settle: the arguments do not fit the groups ' .. groups)
  end
  if acked + done + others > 1000 then
    return nil, redis.error_reply('BADARGS settle takes at most 1000 jobs in one call')
  end
  local ids = {}
  for i = 1, acked do ids[i] = arguments[first - 1 + i] end
  local said = { ids = ids, total = acked + done + others, acked = acked, done = done, results = first + acked,
    stale = {}, refused = '' }
  for i = 1, done do ids[acked + i] = arguments[said.results + 3 * (i - 1)] end
  if others == 0 then return said end
  --- @include "settle/unfinished"
  local fault = settle_unfinished_read(base, said, arguments, said.results + 3 * done, retry, reject, release)
  if fault then return nil, fault end
  said.finish_unfinished, said.unfinished_sound = settle_unfinished, settle_unfinished_sound
  said.gathered = unfinished_open(base, queue, me.name, me.worker)
  return said
end

--- Take the jobs off the consumer. What it does not hold is stale: `ids` is false there. Returns the bytes that it
--- holds less: `freed`, unless some were stale; or nil and an error reply. First write: frees (README).
local function outcomes_take(base, queue, me, said, freed)
  if said.total == 0 then return freed end
  if not said.in_any_order then
    local in_order, alone = held_take_in_order(base, me.name, said.ids)
    said.in_order = in_order
    if alone then me.held = 0 end
    if in_order then return freed end
  end
  --- @include "settle/out_of_order"
  --- @include "settle/sound"
  local fault = not said.sound and sound_records(base)
  if fault then return nil, fault end
  return settle_out_of_order(base, me, said, freed)
end

--- Jobs that are done end: their values go, their records stay. Without others the rows of the call are written too:
--- `batch`, `rows`. Returns an error reply where that meets a key of another type: nothing is changed then.
local function outcomes_end(base, queue, me, said, arguments, batch, rows)
  local ids, gone = said.ids, said.ids
  if not said.in_order or said.acked + said.done < said.total then
    gone = {}
    for i = 1, said.acked + said.done do
      if ids[i] then gone[#gone + 1] = ids[i] end
    end
  end
  said.gone = #gone
  local records, plain, lasting, lifetime, ended, entry, left = {}, string.format('D%d:', queue.now)
  if #gone > 0 then
    for i = 1, said.acked do
      if ids[i] then
        records[#records + 1] = ids[i]
        records[#records + 1] = plain
      end
    end
    for i = 1, said.done do
      local id, at = ids[said.acked + i], said.results + 3 * (i - 1)
      if id then
        local keep, record = tonumber(arguments[at + 1]), plain .. arguments[at + 2]
        if keep == 0 then
          record = plain .. '-'
        elseif keep and keep > queue_keep(queue) then
          lasting = lasting or {}
          lasting[#lasting + 1] = { id, record, keep }
        end
        records[#records + 1] = id
        records[#records + 1] = record
      end
    end
    if queue.turns then lifetime = records_turn(base, queue) end
    ended = redis.pcall('HSET', base .. 'ended', unpack(records))
    left = ended
  end
  if type(ended) ~= 'table' and not said.fates and rows ~= '0' then
    entry = history_batch_add(base, batch, rows, said.refused)
    left = entry
  end
  -- what cannot be taken back is the last
  if type(left) ~= 'table' and #gone > 0 then
    --- @each done(base, queue, gone, said, arguments)
    left = redis.pcall('HDEL', base .. 'jobs', unpack(gone))
  end
  if type(left) == 'table' then
    --- @include "settle/undone"
    undone_settle(base, me.name, ids, ended, entry)
    return left
  end
  if lifetime then redis.call('PEXPIRE', base .. 'ended', string.format('%d', lifetime)) end
  if queue.failed and #gone > 0 then redis.call('HDEL', base .. 'errors', unpack(gone)) end
  for _, one in ipairs(lasting or {}) do
    local result = base .. 'result:' .. one[1]
    redis.call('DEL', result)
    redis.call('RPUSH', result, one[2])
    redis.call('PEXPIRE', result, one[3])
    redis.call('HDEL', base .. 'awaited', one[1])
  end
  if queue.awaited and #gone > 0 then
    --- @include "result/waiters"
    waiters_tell_all(base, records)
  end
  if not said.fates then history_batch_count(base, queue, rows, said) end
end
