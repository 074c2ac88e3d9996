--- Results that clients wait for: `awaited` names the jobs, `result:<id>` is the list that the clients block on. It is
--- not there while its job is awaited.

--- How long that list outlives the end of its job.
local RESULT_LIST_MS = '60000'

--- A client that waits for this job, or asks within a minute, finds the record in its list. `wanted`: what `awaited` had
--- for it: "w" where the job is watched.
local function waiters_tell(base, id, record, wanted)
  local list = base .. 'result:' .. id
  redis.call('DEL', list)
  redis.call('RPUSH', list, record)
  redis.call('PEXPIRE', list, RESULT_LIST_MS)
  if wanted == 'w' then
    --- @include "watch/ring"
    watch_ring(base, id)
  end
end

--- A client that waits for one of these jobs gets its record. `pairs_` is {id, record, id, record, ...}.
local function waiters_tell_all(base, pairs_)
  if redis.call('EXISTS', base .. 'awaited') == 0 then return end
  local ids = {}
  for i = 1, #pairs_, 2 do ids[#ids + 1] = pairs_[i] end
  local awaited = redis.call('HMGET', base .. 'awaited', unpack(ids))
  for i, wanted in ipairs(awaited) do
    if wanted then
      redis.call('HDEL', base .. 'awaited', ids[i])
      waiters_tell(base, ids[i], pairs_[2 * i], wanted)
    end
  end
end
