--- @include "count"
--- @include "value"
--- @include "place"
--- @include "records"
--- @include "history_lines"
--- @include "bury"

--- The jobs with these ids, to be read before anything is written.
local function give_back_read(base, ids)
  local jobs = {}
  if #ids == 0 then return jobs end
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
    if value then
      local job = value_parse(value)
      job.id = ids[i]
      jobs[#jobs + 1] = job
    end
  end
  return jobs
end

--- Jobs that were in a consumer's hands, and are off them by now, go back to their old positions. Those in `charged`
--- (id -> cause JSON) count one attempt; where that was the last one they are buried. Returns how many became ready
--- again. `state` = {now=, since=, keep=, max=, history_max=, worker=}
local function give_back_jobs(base, jobs, charged, state)
  local returned, stored, records, lines = {}, {}, {}, {}
  for _, job in ipairs(jobs) do
    local id = job.id
    job.deliveries = job.deliveries + 1
    local cause = charged[id]
    if job.damaged then cause = bury_damaged(state.now) end
    if cause then job.attempts = job.attempts + 1 end
    local max = job.max > 0 and job.max or tonumber(state.max)
    if job.damaged or cause and max > 0 and job.attempts >= max then
      records[#records + 1] = id
      records[#records + 1] = bury_job(base, state.now, job, cause)
      lines[#lines + 1] = history_line(id, job, 'dead', state.now, state.worker, cause)
    else
      if cause then
        bury_note_error(base, id, cause)
        lines[#lines + 1] = history_line(id, job, 'crash', state.now, state.worker, cause)
      end
      stored[#stored + 1] = id
      stored[#stored + 1] = value_header(job) .. job.envelope
      returned[#returned + 1] = job
    end
  end
  if #returned > 0 then
    redis.call('HSET', base .. 'jobs', unpack(stored))
    place_back(base, returned)
    count_up(base .. 'meta', 'released', #returned)
  end
  records_write(base, state, records)
  history_lines(base, state.history_max, lines)
  return #returned
end
