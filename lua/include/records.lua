--- @include "limits"

--- Records of ended jobs: what an id became, and its result. They live in two generations, `ended` and `ended:old`,
--- turned over every `keep_ms`, so that forgetting costs nothing per job: a record lasts between one and two terms.

--- Turn the generations over when the current one is old enough.
local function records_turn(base, queue)
  local keep, since = tonumber(queue.keep) or KEEP_MS, tonumber(queue.since)
  if since and queue.now - since < keep then return end
  redis.call('UNLINK', base .. 'ended:old')
  if redis.call('EXISTS', base .. 'ended') == 1 then
    redis.call('RENAME', base .. 'ended', base .. 'ended:old')
    redis.call('PEXPIRE', base .. 'ended:old', keep * 4)
  end
  -- one script may write records several times: the generations turn once
  queue.since = string.format('%d', queue.now)
  redis.call('HSET', base .. 'meta', 'ended_since', queue.since)
end

--- Write the records of jobs that ended now.
local function records_write(base, queue, pairs_)
  if #pairs_ == 0 then return end
  records_turn(base, queue)
  redis.call('HSET', base .. 'ended', unpack(pairs_))
  if queue.quiet then return end
  --- @include "awaited"
  records_publish(base, pairs_)
end
