--- @hooks awaits
--- @include "flow/ends"
--- @include "flow/member"
--- @include "result/read"

--- What a job of this id has to say of the parents that come to it: {total=, open=}, false where it does not wait.
local function flows_parents_of(base, id)
  local total = id and tonumber(redis.call('HGET', base .. 'deferred', id) or nil)
  local its = total and FLOWS.tag(redis.call('HGET', base .. 'jobs', id) or '')
  return total and { total = total, open = its and its.open } or false
end

--- What the jobs of an enqueue wait for, or count for, has to be there: answers an error reply where it is not.
--- `plan.ends`: parents that have ended already, id -> {id=, ok=, result=, state=, cause=}. `ids` holds false for jobs
--- that are not stored. What comes to an open job has the next of its numbers, `plan.joined`: job -> how many it has with
--- these; one with a number from before is known, however long ago it ended, and goes into `refused`.
local function flows_parents(base, plan, ids, refused)
  local stored, deferred, named, first = {}, {}, {}, 0
  local job, place, stem, digit
  for _, run in ipairs(plan) do
    for i = first + 1, first + run.count do
      if ids[i] then
        stored[ids[i]] = true
        if run.waits then deferred[ids[i]] = { total = run.waits.total, open = run.waits.open } end
      end
    end
    first = first + run.count
  end
  plan.ends, first = {}, 0
  for _, run in ipairs(plan) do
    for i = first + 1, first + run.count do
      if ids[i] and run.counts then
        if job and ids[i] == stem .. digit then
          place, digit = place + 1, MEMBER_NEXT[digit]
        else
          job, place = member_read(ids[i])
          digit = nil
        end
        if job and not digit then stem, digit = member_following(ids[i], job, place) end
        local its = job and deferred[job]
        if job and not its then
          its = flows_parents_of(base, job)
          deferred[job] = its
        end
        if not its then return redis.error_reply('NOPARENT over ' .. (job or ids[i])) end
        if its.open and place == its.total and place < FLOWS.PARENTS then
          its.total = its.total + 1
          plan.joined = plan.joined or {}
          plan.joined[job] = its.total
        elseif place >= its.total then
          return redis.error_reply('BADARGS enqueue: more parents than it waits for')
        elseif its.open then
          ids[i] = false
          refused[#refused + 1] = i - 1
        end
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
