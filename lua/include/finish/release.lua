--- @include "finish/unfinished"
--- @include "history/lines"

--- What a consumer held goes back to its old positions, because the consumer leaves, or has died.

--- Those in `charged` crashed: id -> {cause = a table, turn=, acquired=, started=}, or {suspicion = a table} of a job
--- that is not charged: that is noted with its errors. `queue.worker`: of the consumer. Returns how many became ready;
--- `queue.died`, where it is there, gets id, task and cause of each job that was charged for the last time.
local function release_jobs(base, consumer, jobs, charged, queue)
  local batch = unfinished_open(base, queue, consumer, queue.worker)
  for _, job in ipairs(jobs) do
    local charge = charged[job.id]
    local fate = { verb = 'release', error_ = '' }
    if charge and charge.suspicion then
      fate.error_ = cjson.encode(charge.suspicion)
    elseif charge then
      fate = { verb = 'crash', counts = true, error_ = charge.cause, turn = charge.turn, acquired = charge.acquired,
        started = charge.started }
    end
    unfinished_add(batch, job, fate)
  end
  local ready = unfinished_close(batch)
  history_lines_write(base, queue.history_max, batch.lines)
  --- @if trim
  queue.taker = consumer
  local left
  --- @each left = trim(base, queue)
  if left then ready = math.min(ready, left) end
  --- @end
  return ready
end
