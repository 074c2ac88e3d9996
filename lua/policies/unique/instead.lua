--- @hooks kept
--- @include "job/state"

--- Which jobs of an enqueue are not stored, because others have their keys: `ids` is false there, and into
--- `how.answered` go {0-based index, id of the other, its state, ...}. Those that are stored and have keys go into
--- `how.index`. `how.over`: what becomes in the same step of those that leave with it, id -> done
--- or dead. Answers an error reply where one is to be refused then.
local function unique_instead(base, plan, ids, how)
  local wanted, keys, count = {}, {}, 0
  for _, run in ipairs(plan) do
    local its = unique_tag(run.tags)
    for i = count + 1, count + run.count do
      if its and ids[i] then
        wanted[#wanted + 1] = { at = i, id = ids[i], key = its.key, lasts = its.lasts, answer = its.answer, due = run.due }
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
    local owner, state = owners[i], nil
    if own[job.key] then
      owner, state = own[job.key].id, own[job.key].due > 0 and 'scheduled' or 'ready'
    elseif owner and values[owner] then
      local its, leaves = unique_tag(values[owner]), how.over and how.over[owner]
      if its and its.key == job.key and leaves ~= 'dead' then
        state = leaves or job_state(base, how.now, owner, values[owner])
      end
    elseif owner then
      state = 'done'
    end
    if state == 'done' then
      local period = redis.call('ZSCORE', base .. 'periods', job.key)
      state = period and tonumber(period) > how.now and 'done'
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
