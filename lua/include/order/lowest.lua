--- The heads of the lowest levels: of all that waits the oldest of what is least urgent.

--- Looks at the lists in one call: they may be full of cancelled elements.
local LOWEST_ROUNDS = 20

--- Take up to `want` jobs off the lists, lowest level first, and in it in their order: into `ids`, with the cancelled
--- elements between them. Returns how many jobs they are.
local function lowest_take(base, want, ids)
  local found, rounds, levels = 0, 0, {}
  for level in string.gmatch(redis.call('HGET', base .. 'meta', 'levels') or '', '%d+') do
    table.insert(levels, 1, level)
  end
  for _, level in ipairs(levels) do
    for _, kind in ipairs({ 'due:', 'ready:' }) do
      while found < want and rounds < LOWEST_ROUNDS do
        local some = redis.call('LPOP', base .. kind .. level, want - found)
        if not some then break end
        rounds = rounds + 1
        for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(some))) do
          ids[#ids + 1] = some[i]
          if value and string.byte(value) ~= 33 then found = found + 1 end
        end
      end
    end
  end
  return found
end
