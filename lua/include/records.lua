--- Records of ended jobs: what an id became, and its result. They live in two generations, `ended` and `ended:old`,
--- turned over every `keep_ms`, so that forgetting costs nothing per job: a record lasts between one and two terms.

--- How long the list that waiters block on outlives the end of its job.
local RESULT_LIST_MS = 60000
local KEEP_MS = 600000

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

--- Whoever waits for one of these jobs gets its record. `pairs_` is {id, record, id, record, ...}.
local function records_publish(base, pairs_)
  if redis.call('EXISTS', base .. 'awaited') == 0 then return end
  local ids = {}
  for i = 1, #pairs_, 2 do ids[#ids + 1] = pairs_[i] end
  local awaited = redis.call('HMGET', base .. 'awaited', unpack(ids))
  for i, wanted in ipairs(awaited) do
    if wanted then
      local list = base .. 'result:' .. ids[i]
      redis.call('HDEL', base .. 'awaited', ids[i])
      redis.call('DEL', list)
      redis.call('RPUSH', list, pairs_[2 * i])
      redis.call('PEXPIRE', list, RESULT_LIST_MS)
    end
  end
end

--- Write the records of jobs that ended now.
local function records_write(base, queue, pairs_)
  if #pairs_ == 0 then return end
  records_turn(base, queue)
  redis.call('HSET', base .. 'ended', unpack(pairs_))
  if not queue.quiet then records_publish(base, pairs_) end
end

--- The record of an ended job, or false.
local function records_read(base, id)
  return redis.call('HGET', base .. 'ended', id) or redis.call('HGET', base .. 'ended:old', id)
end
