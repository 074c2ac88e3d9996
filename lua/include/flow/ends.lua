--- @hooks awaits
--- @include "flow/waits"
--- @include "job/value"

--- What follows where a job for which others wait has ended, or one ends that waits: who waits for it hears of it, becomes
--- ready or ends too. Looked for by few calls, so apart from what all need that end a job.

--- What each letter of a record says.
FLOWS.STATES = { D = 'done', F = 'dead', C = 'cancelled', P = 'purged', E = 'expired', R = 'displaced' }

--- A job that has ended with this record, as a parent. `result`: false where it failed.
function FLOWS.ended(id, tags, record, result)
  if result then return { id = id, tags = tags, ok = true, result = result, state = 'done' } end
  local letter, said = string.match(record or '', '^(%a)%d+:(.*)$')
  local read, cause = pcall(cjson.decode, said or '')
  return { id = id, tags = tags, ok = false, state = FLOWS.STATES[letter] or 'elsewhere',
    cause = read and type(cause) == 'table' and cause or nil }
end

--- Whether a job that has ended may live again in its queue: a dead letter that did not leave it.
function FLOWS.may_return(base, one)
  if one.returns ~= nil then return one.returns end
  return one.state == 'dead' and redis.call('ZSCORE', base .. 'dead', one.id)
end

--- The parents `some` ({place=, one=}) of this job, which has so many, have ended. Returns why it ends with that, nil: it
--- does not, and whether it has heard of all then.
function FLOWS.join(base, job, its, total, some)
  local runs, left, why = {}, {}, nil
  for _, each in ipairs(some) do
    local one = each.one
    local counts = one.ok and its.policy ~= 'f' or not one.ok and (its.policy == 'c' or its.policy == 'f')
    if counts then
      if its.mode == 'n' then
        runs[#runs + 1] = tonumber(each.place)
        runs[#runs + 1] = runs[#runs]
      else
        left[#left + 1], left[#left + 2] = each.place, FLOWS.left(one)
      end
    elseif its.policy ~= 'w' or not FLOWS.may_return(base, one) then
      why = why or one
    end
  end
  return why, not why and FLOWS.gather(base, job, its, total, runs, left)
end

--- Why a job ends whose parent has left it nothing to wait for, as a table.
function FLOWS.cause(queue, one)
  if one.ok then
    return { kind = 'parent', type = 'ParentDone', at = queue.now, job = one.id, state = 'done',
      message = string.format("job '%s' is done, and this one was to run if it failed", one.id) }
  end
  local before = one.cause and one.cause.kind == 'parent' and one.cause
  local id, state = before and before.job or one.id, before and before.state or one.state
  local cause = one.cause or {}
  local kind = (cause.type or '') ~= '' and cause.type or cause.kind
  local said = before and before.said or kind and tostring(kind) .. ': ' .. tostring(cause.message or '')
  return { kind = 'parent', type = 'ParentFailed', at = queue.now, job = id, state = state, said = said,
    message = string.format("job '%s', for which it waited, is %s%s", id, state, said and ': ' .. said or '') }
end

--- These deferred jobs ({id=, why=}) end. Returns them as parents that have ended: {id=, tags=, state=, cause=}.
function FLOWS.stop(base, queue, stopped)
  --- @include "queue/count"
  --- @include "result/records"
  --- @include "history/lines"
  local ids, keys, ends, records, lines = {}, {}, {}, {}, {}
  for i, one in ipairs(stopped) do
    ids[i], keys[2 * i - 1], keys[2 * i] = one.id, base .. 'gathered:' .. one.id, base .. 'heard:' .. one.id
  end
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
    if value then
      local job, cause = value_parse(value), cjson.encode(stopped[i].why)
      ends[#ends + 1] = { id = ids[i], tags = job.tags, state = 'cancelled', cause = stopped[i].why }
      records[#records + 1] = ids[i]
      records[#records + 1] = string.format('C%d:', queue.now) .. cause
      lines[#lines + 1] = history_lines_row(ids[i], job, 'cancelled', queue.now, '', cause)
    end
  end
  redis.call('HDEL', base .. 'jobs', unpack(ids))
  redis.call('HDEL', base .. 'deferred', unpack(ids))
  redis.call('HDEL', base .. 'stops', unpack(ids))
  redis.call('ZREM', base .. 'unsealed', unpack(ids))
  redis.call('UNLINK', unpack(keys))
  --- @each left(base, ids)
  if #ends == 0 then return ends end
  count_up(base .. 'meta', 'cancelled', #ends)
  records_write(base, queue, records)
  history_lines_write(base, queue.history_max, lines)
  -- who settles writes the number of rows as it knows it
  queue.rows = tonumber(redis.call('HGET', base .. 'meta', 'history_rows')) or 0
  return ends
end

--- These jobs ({id=, job=, its=}) have no parents left to wait for: each becomes ready as one that is due, before what
--- has not begun. Returns those whose results are too large: {id=, why=}.
function FLOWS.release(base, queue, full)
  --- @include "schedule/add"
  local stored, scheduled, ids, keys, soonest, large = {}, {}, {}, {}, nil, {}
  for _, one in ipairs(full) do
    local job, its, results = one.job, one.its, ''
    if its.mode ~= 'n' then
      local places = {}
      for i = 1, its.total do places[i] = string.format('%d', i - 1) end
      local found = its.total > 0 and redis.call('HMGET', base .. 'gathered:' .. one.id, unpack(places)) or {}
      for i = 1, its.total do found[i] = found[i] or '[1,null]' end
      -- what stands in a header has neither of these; in JSON they are in texts, where they may be escaped
      results = string.gsub(table.concat(found, ','), '[;|]', { [';'] = '\\u003b', ['|'] = '\\u007c' })
    end
    if #results > FLOWS.BYTES then
      local said = string.format('the results of its %d parents have %d bytes, more than %d: pass references',
        its.total, #results, FLOWS.BYTES)
      large[#large + 1] = { id = one.id, why = { kind = 'parent', type = 'ResultsTooLarge', at = queue.now, message = said } }
    else
      if its.mode ~= 'n' then job.tags = job.tags .. '|i[' .. results .. ']' end
      job.due = math.max(job.due, queue.now)
      soonest = math.min(soonest or job.due, job.due)
      stored[#stored + 1] = one.id
      stored[#stored + 1] = value_header(job) .. job.envelope
      scheduled[#scheduled + 1] = { due = job.due, level = job.level, position = job.position, id = one.id }
      ids[#ids + 1], keys[#keys + 1] = one.id, FLOWS.noted(base, one.id, its)
    end
  end
  if #ids == 0 then return large end
  redis.call('HSET', base .. 'jobs', unpack(stored))
  redis.call('HDEL', base .. 'deferred', unpack(ids))
  redis.call('UNLINK', unpack(keys))
  --- @each left(base, ids)
  schedule_add(base, scheduled)
  --- @each weigh(base, queue.now, stored, 'scheduled')
  queue.quiet = false
  -- who pulls in the same step promotes what is due
  if not queue.paused and not queue.pulls then
    schedule_add_watch(base, queue.now, soonest, queue.timer)
    queue.timer, queue.watched = redis.call('HGET', base .. 'meta', 'timer'), true
  end
  return large
end

--- Who waits for jobs that have ended: {job, ...} in the order of these, job -> {{place=, one=}, ...}. Those in other
--- queues hear of it by way of the outbox.
function FLOWS.children(base, ends)
  local order, joins, ids, away = {}, {}, {}, {}
  local function add(job, place, one)
    if not joins[job] then
      joins[job] = {}
      order[#order + 1] = job
    end
    table.insert(joins[job], { place = place, one = one })
  end
  for i, one in ipairs(ends) do
    ids[i] = one.id
    local job, place = FLOWS.derived(one.id, one.tags)
    if job then add(job, place, one) end
  end
  if redis.call('EXISTS', base .. 'edges') == 1 then
    local over = {}
    for i, lines in ipairs(redis.call('HMGET', base .. 'edges', unpack(ids))) do
      if lines then
        for place, where, job in string.gmatch(lines, '(%d+)(%S*) ([^\n]+)') do
          if where == '' then
            add(job, place, ends[i])
          else
            away[#away + 1] = { where = where, job = job, place = place, one = ends[i] }
          end
        end
        -- a dead letter that is kept here may live again
        if not FLOWS.may_return(base, ends[i]) then over[#over + 1] = ids[i] end
      end
    end
    if #over > 0 then redis.call('HDEL', base .. 'edges', unpack(over)) end
    if #away > 0 then FLOWS.send(base, away) end
  end
  return order, joins
end

--- Jobs of other queues wait for jobs that have ended here: `away` = {{where=, job=, place=, one=}, ...}. Of each of
--- them one entry goes into the outbox, of at most `RESULTS` ends.
function FLOWS.send(base, away)
  --- @include "outgoing/add"
  local entries, open = {}, {}
  for _, each in ipairs(away) do
    local one, to = each.one, each.where .. ' ' .. each.job
    local entry = open[to]
    if not entry or entry.ends == FLOWS.RESULTS then
      entry = { target = FLOWS.name(string.match(each.where, '@(.*)$') or ''), id = each.job, ends = 0, said = {} }
      open[to], entries[#entries + 1] = entry, entry
    end
    local left = one.cause and cjson.encode(one.cause) or ''
    if one.ok then left = string.byte(each.where) == 114 and one.result or '' end
    entry.ends = entry.ends + 1
    for _, said in ipairs({ each.place, one.id, one.state, FLOWS.may_return(base, one) and '1' or '', left }) do
      entry.said[#entry.said + 1] = said
    end
  end
  for first = 1, #entries, FLOWS.PIECE do
    local some = { unpack(entries, first, math.min(#entries, first + FLOWS.PIECE - 1)) }
    for _, entry in ipairs(some) do entry.envelope = cjson.encode(entry.said) end
    outgoing_add(base, some)
  end
end

--- These jobs ({id=, tags=, ok=, result=, state=, cause=}) have ended: who waits for them hears of it, and who waits for
--- those that end with that.
function FLOWS.tell(base, queue, ends)
  local left = FLOWS.STOPS
  while #ends > 0 and redis.call('EXISTS', base .. 'deferred', base .. 'edges') > 0 do
    local order, joins = FLOWS.children(base, ends)
    ends = FLOWS.hear(base, queue, order, joins, left)
    left = left - #ends
  end
end

--- The same, of those that are known. Returns those that ended with that, at most `left`: the others are noted. One step
--- may end many parents, for each of which many wait: a command takes some of them.
function FLOWS.hear(base, queue, order, joins, left)
  local ends = {}
  for first = 1, #order, FLOWS.PIECE do
    local some = { unpack(order, first, math.min(#order, first + FLOWS.PIECE - 1)) }
    for _, one in ipairs(FLOWS.hear_some(base, queue, some, joins, left - #ends)) do ends[#ends + 1] = one end
  end
  return ends
end

function FLOWS.hear_some(base, queue, order, joins, left)
  local full, stopped = {}, {}
  local totals, values = redis.call('HMGET', base .. 'deferred', unpack(order)), redis.call('HMGET', base .. 'jobs', unpack(order))
  for i, id in ipairs(order) do
    local its = totals[i] and FLOWS.tag(values[i])
    if its then
      local why, all = FLOWS.join(base, id, its, tonumber(totals[i]), joins[id])
      if why then
        stopped[#stopped + 1] = { id = id, why = FLOWS.cause(queue, why) }
      elseif all then
        local job = value_parse(values[i])
        full[#full + 1] = { id = id, job = job, its = its }
      end
    end
  end
  if #full > 0 then
    for _, one in ipairs(FLOWS.release(base, queue, full)) do stopped[#stopped + 1] = one end
  end
  local now = {}
  for i, one in ipairs(stopped) do
    if i <= left then
      now[i] = one
    else
      redis.call('HSET', base .. 'stops', one.id, cjson.encode(one.why))
      -- what a settle saw before
      queue.waits = nil
    end
  end
  return #now > 0 and FLOWS.stop(base, queue, now) or now
end
