--- Results that somebody waits for: `awaited` names the jobs, `result:<id>` is the list they block on.

--- How long that list outlives the end of its job.
local RESULT_LIST_MS = 60000

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
