--- @if beside
--- @include "order/member"
--- @include "order/score"
--- @end

--- The ids of the first `most` elements that `lowest_take` would take, or fewer: those of one place. Nothing is taken.
local function lowest_peek(base, most)
  local levels, ids = redis.call('HGET', base .. 'meta', 'levels') or '', {}
  --- @if beside
  local sets = {}
  --- @each beside(base, sets)
  --- @end
  local first = {}
  for level in string.gmatch(levels, '%d+') do table.insert(first, 1, level) end
  for _, level in ipairs(first) do
    --- @if beside
    for _, key in ipairs(sets) do
      local score = score_behind(tonumber(level))
      for _, member in ipairs(redis.call('ZREVRANGEBYSCORE', key, score, score, 'LIMIT', '0', most)) do
        ids[#ids + 1] = member_id(member)
      end
      if ids[1] then return ids end
    end
    --- @end
    for _, kind in ipairs({ 'due:', 'ready:' }) do
      ids = redis.call('LRANGE', base .. kind .. level, '0', most - 1)
      if ids[1] then return ids end
    end
  end
  return ids
end
