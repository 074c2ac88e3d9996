--- @include "job/value"

--- What an attempt may cost: how often a job may be tried, and how often it may cost a worker its process. The job says
--- it, else its task (as the worker that has the job knows it), else the pool, else the queue.

--- Crashes that a job may have where nobody says otherwise.
local CRASHES = 3

--- A crashed job comes back at once the first time; from the second crash on it waits, each time longer: ms, ms.
local CRASH_DELAY, CRASH_DELAY_MOST = 1000, 600000

--- The limits that the tasks of a consumer's worker have: {task = {attempts, crashes}, ["*"] = ...}, 0 where they say
--- nothing. Most have none.
local function attempt_limits(base, consumer)
  local text = redis.call('HGET', base .. 'consumer:' .. consumer, 'limits')
  local known, limits = pcall(cjson.decode, text or '{}')
  return known and type(limits) == 'table' and limits or {}
end

--- How many attempts (`which` 1) or crashes (2) a job may have; 0: any number. `own`, `queue`: what it says itself, and
--- what the queue says.
local function attempt_most(limits, job, which, own, queue)
  if own > 0 then return own end
  for _, name in ipairs({ value_task(job.envelope), '*' }) do
    local said = limits[name]
    local most = type(said) == 'table' and tonumber(said[which]) or 0
    if most > 0 then return most end
  end
  return tonumber(queue) or 0
end

--- Whether the attempt that is counted now is the last one: at the limit a job is dead-lettered. `crash`: it cost a
--- worker its process, which has a limit of its own. `asked` = {base=, consumer=, queue=}; what the consumer's tasks
--- say is read once, into it.
local function attempt_last(asked, job, crash)
  asked.limits = asked.limits or attempt_limits(asked.base, asked.consumer)
  local most = attempt_most(asked.limits, job, 1, job.max, asked.queue.max)
  if most > 0 and job.attempts + 1 >= most then return true end
  if not crash then return false end
  asked.max_crashes = asked.max_crashes or redis.call('HGET', asked.base .. 'meta', 'max_crashes') or CRASHES
  most = attempt_most(asked.limits, job, 2, job.max_crashes, asked.max_crashes)
  return most > 0 and job.crashes + 1 >= most
end

--- ms that a job waits after this crash, the `turn`-th of those that were charged together: they come back one after
--- the other, so that the next crash shows which of them it was.
local function attempt_crash_delay(job, turn)
  if job.crashes < 2 then return 0 end
  return math.min(CRASH_DELAY * 5 ^ math.min(job.crashes - 2, 10) * turn, CRASH_DELAY_MOST)
end
