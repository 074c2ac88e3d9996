--- @include "held/remove"

--- A settle of jobs that do not leave in the order in which they came, or not all of which this consumer holds.

--- Returns the bytes that the consumer holds less.
local function settle_out_of_order(base, me, said, freed)
  local ids = said.ids
  local mine, where = held_remove_find(base, me.name, ids)
  local leaving, rows, size = {}, {}, 0
  for i = 1, said.total do
    local id, fate = ids[i], said.fates and said.fates[i]
    if mine[id] and not (fate and fate.earlier) then
      mine[id] = nil
      leaving[id] = true
    else
      -- not held by it, named twice in one call, or of an earlier delivery
      said.stale[#said.stale + 1] = id
      rows[#rows + 1] = i - 1
      ids[i] = false
    end
  end
  said.refused = table.concat(rows, ',')
  if me.bytes > 0 and #rows > 0 then
    -- the caller's sum counts jobs that left this consumer another way: cancelled, or settled in a call whose reply was
    -- lost
    for id in pairs(leaving) do size = size + redis.call('HSTRLEN', base .. 'jobs', id) end
    freed = size
  end
  if next(leaving) then
    held_remove(base, me.name, leaving, where)
  else
    redis.call('HDEL', base .. 'meta', 'oom')
  end
  return freed
end
