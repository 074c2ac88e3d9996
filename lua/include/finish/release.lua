--- @include "queue/count"
--- @include "job/value"
--- @include "order/reinsert"
--- @include "result/records"
--- @include "history/lines"
--- @include "finish/dead_letter"
--- @include "finish/attempt"
--- @include "schedule/add"

--- The jobs with these ids, to be read before anything is written.
local function release_read(base, ids)
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

--- One attempt that cost a worker its process. `charge` = {cause = a table, turn=, acquired=, started=}, or {suspicion
--- = a table} of a job that is not charged: `release_jobs` notes that with its errors. `most` = {limits=, attempts=,
--- crashes=}: what tasks and queue allow. Returns whether it was the last one, the cause as JSON, its row in history,
--- and ms to wait.
local function release_charge(job, charge, most, state)
  local cause = charge.cause
  cause.attempt, cause.crash = job.attempts + 1, job.crashes + 1
  local text = cjson.encode(cause)
  local attempts = attempt_most(most.limits, job, 1, job.max, most.attempts)
  local crashes = attempt_most(most.limits, job, 2, job.max_crashes, most.crashes)
  local last = attempts > 0 and cause.attempt >= attempts or crashes > 0 and cause.crash >= crashes
  local line = history_lines_row(job.id, job, last and 'dead' or 'crash', state.now, state.worker, text, charge)
  job.attempts, job.crashes = cause.attempt, cause.crash
  return last, text, line, attempt_crash_delay(job, charge.turn)
end

--- Jobs that a consumer held, and that are off its list by now, go back to their old positions. Those in `charged`
--- (id -> charge) count one attempt and one crash; at the limit of either they are dead-lettered, and from the second
--- crash on they wait before they are back. Returns how many became ready again. `state` = {now=, since=, keep=, max=,
--- history_max=, paused=, timer=, worker=}; where it has a list `died`, that gets id, task
--- and cause of each job that was charged for the last time.
local function release_jobs(base, consumer, jobs, charged, state)
  local returned, stored, records, lines, scheduled, soonest = {}, {}, {}, {}, {}, nil
  local most
  for _, job in ipairs(jobs) do
    local id, charge = job.id, charged[job.id]
    local last, cause, line, delay = false, '', nil, 0
    if job.damaged then
      last, cause = true, dead_letter_undecodable(state.now)
      lines[#lines + 1] = history_lines_row(id, job, 'dead', state.now, state.worker, cause)
      job.attempts = job.attempts + 1
    elseif charge and charge.suspicion then
      cause = cjson.encode(charge.suspicion)
    elseif charge then
      most = most or { limits = attempt_limits(base, consumer), attempts = state.max,
        crashes = redis.call('HGET', base .. 'meta', 'max_crashes') or CRASHES }
      last, cause, line, delay = release_charge(job, charge, most, state)
      lines[#lines + 1] = line
      if last and state.died then
        for _, said in ipairs({ id, value_task(job.envelope), cause }) do state.died[#state.died + 1] = said end
      end
    end
    job.deliveries = job.deliveries + 1
    if last then
      records[#records + 1] = id
      records[#records + 1] = dead_letter_store(base, state.now, job, cause)
    else
      errors_note(base, id, cause)
      stored[#stored + 1] = id
      stored[#stored + 1] = value_header(job) .. job.envelope
      if delay > 0 then
        local due = state.now + delay
        redis.call('HSET', base .. 'returns_to', id, 'old')
        scheduled[#scheduled + 1] = { due = due, level = job.level, position = job.position, id = id }
        soonest = math.min(soonest or due, due)
      else
        returned[#returned + 1] = job
      end
    end
  end
  if #stored > 0 then
    redis.call('HSET', base .. 'jobs', unpack(stored))
    count_up(base .. 'meta', 'released', #stored)
  end
  if #returned > 0 then reinsert_jobs(base, returned) end
  if soonest then
    schedule_add(base, scheduled)
    state.quiet = false
    if not state.paused then
      schedule_add_watch(base, state.now, soonest, state.timer)
      state.timer = redis.call('HGET', base .. 'meta', 'timer')
    end
  end
  records_write(base, state, records)
  history_lines_write(base, state.history_max, lines)
  return #returned
end
