--- @include "order/sort_key"
--- @include "order/levels"
--- @one rank

--- Put jobs back into their places. Lists stay sorted, so the only elements that can stand before a returned
--- job are others that were returned or passed over: the cost is what was in flight, never the backlog.

local REINSERT_CHUNK = 200

--- `entries` of one list, ascending: {due=, position=, id=}.
local function reinsert_into(base, key, entries)
  local last = entries[#entries]
  local run, more = {}, true
  -- most often nothing, or a few, stand before what comes back: look at little first
  local look = math.min(REINSERT_CHUNK, #entries + 3)
  while more do
    local ids = redis.call('LRANGE', key, #run, #run + look - 1)
    more = #ids == look
    look = REINSERT_CHUNK
    if #ids == 0 then break end
    local values = redis.call('HMGET', base .. 'jobs', unpack(ids))
    for i, id in ipairs(ids) do
      -- an element without a job is no job's place: it goes where its neighbours go
      local other = sort_key_read(values[i]) or { due = 0, position = 0 }
      if sort_key_before(last, other) then
        more = false
        break
      end
      other.id = id
      run[#run + 1] = other
    end
  end
  local merged, i, j = {}, 1, 1
  while i <= #run or j <= #entries do
    if j > #entries or (i <= #run and not sort_key_before(entries[j], run[i])) then
      merged[#merged + 1] = run[i].id
      i = i + 1
    else
      merged[#merged + 1] = entries[j].id
      j = j + 1
    end
  end
  if #run > 0 then redis.call('LTRIM', key, #run, -1) end
  local chunk = {}
  for k = #merged, 1, -1 do
    chunk[#chunk + 1] = merged[k]
    if #chunk == REINSERT_CHUNK or k == 1 then
      redis.call('LPUSH', key, unpack(chunk))
      chunk = {}
    end
  end
end

--- `jobs`: parsed values with an `id` each, in any order. `queue` = {levels=, promoted=}: the levels in use, and whether
--- the queue ever had due jobs. A value that something else has written may name a list where no pull would look.
local function reinsert_jobs(base, queue, jobs)
  --- @each jobs = shelf(base, queue, jobs)
  table.sort(jobs, sort_key_before)
  local lists, keys, used, due = {}, {}, {}, false
  for _, job in ipairs(jobs) do
    local key = rank(base, job)
    if not lists[key] then
      lists[key] = {}
      keys[#keys + 1] = key
      used[job.level] = true
      due = due or job.due > 0
    end
    table.insert(lists[key], job)
  end
  for _, key in ipairs(keys) do reinsert_into(base, key, lists[key]) end
  queue.levels = levels_use(base .. 'meta', queue.levels, used)
  if due and not queue.promoted then
    redis.call('HSET', base .. 'meta', 'promoted', '1')
    queue.promoted = '1'
  end
end
