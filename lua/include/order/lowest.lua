--- @if beside
--- @include "order/member"
--- @include "order/score"
--- @end

--- The heads of the lowest levels: of all that waits the oldest of what is least urgent. Of jobs with sort keys those that
--- stand last, before the others of their level.

--- Looks at the lists in one call: they may be full of cancelled elements.
local LOWEST_ROUNDS = 20

--- Take up to `want` ready jobs off their places, lowest level first, and in it in their order: into `ids`, with the cancelled
--- elements between them. Returns how many jobs they are.
local function lowest_take(base, want, ids)
  local found, rounds, levels = 0, 0, {}
  for level in string.gmatch(redis.call('HGET', base .. 'meta', 'levels') or '', '%d+') do
    table.insert(levels, 1, level)
  end
  --- @if beside
  local sets = {}
  --- @each beside(base, sets)
  --- @end
  for _, level in ipairs(levels) do
    --- @if beside
    for _, key in ipairs(sets) do
      local score = score_behind(tonumber(level))
      local last = found < want and redis.call('ZREVRANGEBYSCORE', key, score, score, 'LIMIT', '0', want - found) or {}
      for _, member in ipairs(last) do ids[#ids + 1] = member_id(member) end
      if #last > 0 then redis.call('ZREM', key, unpack(last)) end
      found = found + #last
    end
    --- @end
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
