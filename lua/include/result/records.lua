--- @include "queue/keep"

--- Records of ended jobs: what an id became, and its result. They live in two generations, `ended` and `ended:old`,
--- turned over every `keep_ms`, so that forgetting costs nothing per job: a record lasts between one and two terms. The
--- lifetime that a generation is born with ends it where nothing else ends any more.

--- Whether the generations are to be turned over, or none has begun.
local function records_due(queue)
  local since = tonumber(queue.since)
  return not since or queue.now - since >= queue_keep(queue)
end

--- Turn the generations over where the current one is old enough. Returns the lifetime of the one that begins then, ms.
local function records_turn(base, queue)
  if not records_due(queue) then return nil end
  local keep = queue_keep(queue)
  if tonumber(queue.since) then
    redis.call('UNLINK', base .. 'ended:old')
    -- its lifetime goes with it: twice the term from its beginning, which is now a term ago, or more
    if redis.call('EXISTS', base .. 'ended') == 1 then redis.call('RENAME', base .. 'ended', base .. 'ended:old') end
  end
  -- one script may write records several times: the generations turn once
  queue.since = string.format('%d', queue.now)
  redis.call('HSET', base .. 'meta', 'ended_since', queue.since)
  return 2 * keep
end

--- This id is alive again. A generation of which nothing is left is over: what ends next begins one, with a lifetime.
--- Returns how many records of it there were.
local function records_forget(base, id)
  local older, last = redis.call('HDEL', base .. 'ended:old', id), redis.call('HDEL', base .. 'ended', id)
  if last == 1 and redis.call('EXISTS', base .. 'ended') == 0 then redis.call('HDEL', base .. 'meta', 'ended_since') end
  return older + last
end

--- Write the records of jobs that ended now.
local function records_write(base, queue, pairs_)
  if #pairs_ == 0 then return end
  local lifetime = records_turn(base, queue)
  redis.call('HSET', base .. 'ended', unpack(pairs_))
  if lifetime then redis.call('PEXPIRE', base .. 'ended', string.format('%d', lifetime)) end
  if queue.quiet then return end
  --- @include "result/waiters"
  waiters_tell_all(base, pairs_)
end
