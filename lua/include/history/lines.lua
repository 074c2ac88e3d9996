--- @include "queue/count"
--- @include "job/value"
--- @include "history/batch"

--- History rows that scripts write themselves.

--- A row that no worker wrote. `job`: as it was before this attempt. `cause`: JSON, nil or "" where there is none.
--- `times` = {acquired=, started=} of an attempt, ms, where they are known.
local function history_lines_row(id, job, outcome, now, worker, cause, times)
  local row = {
    id = id,
    task = value_task(job.envelope),
    level = job.level,
    group = value_name(job, 'g'),
    share = value_name(job, 'e'),
    outcome = outcome,
    attempts = job.attempts,
    deliveries = job.deliveries,
    enqueued = job.enqueued,
    due = job.due,
    acquired = times and times.acquired,
    started = times and times.started,
    finished = now,
    worker = worker or '',
    body_size = #job.envelope,
    labels = value_labels(job.envelope),
  }
  local line = cjson.encode(row)
  if cause and cause ~= '' then line = string.sub(line, 1, -2) .. ',"cause":' .. cause .. '}' end
  return line
end

local function history_lines_write(base, max, lines)
  if #lines == 0 then return end
  redis.call('XADD', base .. 'history', '*', 'n', #lines, 'j', table.concat(lines, '\n'))
  history_batch_trim(base, count_up(base .. 'meta', 'history_rows', #lines), max)
end
