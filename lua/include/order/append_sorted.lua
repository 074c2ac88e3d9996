--- @include "order/sort_key"

--- Append due jobs, `ids` in their order, to a list whose last element is `last`.
local function append_sorted(base, key, last, ids)
  local values = redis.call('HMGET', base .. 'jobs', last, ids[1])
  local before, first = sort_key_read(values[1]), sort_key_read(values[2])
  if not before or not first or sort_key_before(before, first) then
    redis.call('RPUSH', key, unpack(ids))
    return
  end
  -- Redis's clock was set back, or a job was made ready by hand in the millisecond in which others were due: what
  -- stands behind the first one comes off the tail, and goes back among them
  local run, behind = {}, true
  local function read(some)
    for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(some))) do
      local entry = sort_key_read(value) or { due = 0, position = 0 }
      entry.id = some[i]
      run[#run + 1] = entry
    end
  end
  read(ids)
  while behind do
    local some = redis.call('LRANGE', key, -200, -1)
    if #some == 0 then break end
    redis.call('LTRIM', key, 0, -#some - 1)
    read(some)
    behind = sort_key_before(first, run[#run - #some + 1])
  end
  table.sort(run, sort_key_before)
  for i = 1, #run, 200 do
    local some = {}
    for j = i, math.min(i + 199, #run) do some[#some + 1] = run[j].id end
    redis.call('RPUSH', key, unpack(some))
  end
end
