--- @hooks kept
--- @include "job/state"

--- What a job keeps when another one replaces it: labels and limits, by its tags or its value.
local function unique_place(text)
  local tags = string.match(text, '^[^;]*')
  local place = string.match(tags, '|c[^|]*') or ''
  for limit in string.gmatch(tags, '|l[^|:]*') do place = place .. limit end
  return place
end

--- Which jobs of an enqueue are not stored, because others have their keys: `ids` is false there, and into
--- `how.answered` go {0-based index, id of the other, its state, ...}. Those that are stored and have keys go into
--- `how.index`. Into `how.replaced` go those that others make way for with their envelopes: {at=, id=, value=, due=},
--- `value` of the other one, `due` where it gets another due time, or {at=, over=}, the place of one of the same
--- enqueue; nil: nothing is replaced. `how.over`: what becomes in the same step of those that leave with it, id -> done
--- or dead. Answers an error reply where one is to be refused then.
local function unique_instead(base, plan, ids, how)
  local wanted, keys, count = {}, {}, 0
  for _, run in ipairs(plan) do
    local its = unique_tag(run.tags)
    for i = count + 1, count + run.count do
      if its and ids[i] then
        wanted[#wanted + 1] = { at = i, id = ids[i], key = its.key, lasts = its.lasts, answer = its.answer,
          most = its.most, run = run, due = run.due, place = unique_place(run.tags) }
        keys[#keys + 1] = its.key
      end
    end
    count = count + run.count
  end
  if #wanted == 0 then return nil end
  local owners, values, own = redis.call('HMGET', base .. 'unique', unpack(keys)), {}, {}
  local known = {}
  for _, owner in ipairs(owners) do
    if owner then known[#known + 1] = owner end
  end
  for i, value in ipairs(known[1] and redis.call('HMGET', base .. 'jobs', unpack(known)) or {}) do
    values[known[i]] = value
  end
  for i, job in ipairs(wanted) do
    local owner, state, first = owners[i], nil, own[job.key]
    if first then
      owner, state = first.id, first.due > 0 and 'scheduled' or 'ready'
    elseif owner and values[owner] then
      local its, leaves = unique_tag(values[owner]), how.over and how.over[owner]
      if its and its.key == job.key and leaves ~= 'dead' then
        state = leaves or job_state(base, how.now, owner, values[owner])
      end
    elseif owner then
      state = 'done'
    end
    local replaces = how.replaced and (job.answer == 'r' or job.answer == 'd' or job.answer == 't')
    local period
    if state == 'done' or state and replaces then
      period = tonumber(redis.call('ZSCORE', base .. 'periods', job.key) or nil)
      period = period and period > how.now and period
      -- one that puts off may begin when the one before is over
      local most = how.now + (tonumber(job.lasts) or math.huge) * (job.answer == 't' and 2 or 1)
      if period and period > most then
        how.cut = how.cut or {}
        how.cut[#how.cut + 1] = { key = job.key, by = period - most, at = most }
        period = most
      end
    end
    if state == 'done' and not period then state = nil end
    if replaces and (state == 'held' or state == 'done') then
      -- who is taken gets nothing new any more
      if job.answer == 't' and period then
        job.due = math.max(job.due, period)
        -- one alone of a run is stored, since they share their key
        job.run.due = job.due
      end
      state = nil
    elseif replaces and state then
      if (first and first.place or unique_place(values[owner])) ~= job.place then
        return redis.error_reply(
          'CONFLICT unique its labels and limits must be those of the job that it is to replace')
      end
    end
    if replaces and state and first then
      how.replaced[#how.replaced + 1] = { at = job.at, over = first.at }
    elseif replaces and state then
      local other, due = value_parse(values[owner]), nil
      if job.answer == 'd' and job.due > 0 and state == 'scheduled' and other.deliveries + other.attempts == 0
        and redis.call('HEXISTS', base .. 'parked', owner) == 0 then
        due = job.most > 0 and math.min(job.due, other.enqueued + job.most) or job.due
        if due <= how.now then due = nil end
      end
      how.replaced[#how.replaced + 1] = { at = job.at, id = owner, value = values[owner], due = due }
    end
    if not state then
      own[job.key] = job
      how.index[#how.index + 1] = job
    elseif job.answer == 'f' then
      return redis.error_reply('DUPLICATE ' .. string.format('%d %s %s', job.at - 1, state, owner))
    else
      ids[job.at] = false
      how.answered[#how.answered + 1] = job.at - 1
      how.answered[#how.answered + 1] = owner
      how.answered[#how.answered + 1] = state
    end
  end
end
