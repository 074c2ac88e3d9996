--- Jobs of a level that were due stand before its others, by due time.

--- The name of their list.
local function due_list(level)
  return 'due:' .. level
end

--- These come before all of them, the last one first: each was due before the one that stands behind it.
local function due_list_put(base, level, ids)
  redis.call('LPUSH', base .. due_list(level), unpack(ids))
  redis.call('HSET', base .. 'meta', 'promoted', '1')
end
