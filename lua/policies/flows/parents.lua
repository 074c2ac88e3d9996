--- @hooks awaits
--- @include "result/read"

--- What the jobs of an enqueue wait for, or count for, has to be there: answers an error reply where it is not.
--- `plan.ends`: parents that have ended already, id -> {id=, ok=, result=, state=, cause=}. `ids` holds false for jobs
--- that are not stored.
local function flows_parents(base, plan, ids, now)
  local stored, deferred, named, first = {}, {}, {}, 0
  for _, run in ipairs(plan) do
    for i = first + 1, first + run.count do
      if ids[i] then
        stored[ids[i]] = true
        if run.waits then deferred[ids[i]] = run.waits.total end
      end
    end
    first = first + run.count
  end
  plan.ends, first = {}, 0
  for _, run in ipairs(plan) do
    for i = first + 1, first + run.count do
      local job, place = FLOWS.derived(ids[i] or '', run.counts and '|p')
      if ids[i] and run.counts then
        local total = job and deferred[job]
        if job and not total then
          total = tonumber(redis.call('HGET', base .. 'deferred', job) or nil)
          deferred[job] = total
        end
        if not total then return redis.error_reply('NOPARENT over ' .. (job or ids[i])) end
        if tonumber(place) >= total then return redis.error_reply('BADARGS enqueue: more parents than it waits for') end
      end
    end
    first = first + run.count
    for _, id in ipairs(run.waits and run.waits.ids or {}) do
      if not named[id] then
        local _, lines = string.gsub(redis.call('HGET', base .. 'edges', id) or '', '\n', '')
        local value = redis.call('HGET', base .. 'jobs', id)
        local record = result_read(base, id)
        named[id] = lines
        if record then
          local ok, result = string.match(record, '^(%a)%d+:(.*)$')
          plan.ends[id] = FLOWS.ended(id, value, record, ok == 'D' and result)
        elseif not value and not stored[id] and not run.waits.away then
          return redis.error_reply('NOPARENT unknown ' .. id)
        end
      end
      named[id] = named[id] + run.count
      if named[id] > FLOWS.WAITING then
        return redis.error_reply(string.format('BADARGS enqueue: more than %d jobs would wait for one by name',
          FLOWS.WAITING))
      end
    end
  end
end
