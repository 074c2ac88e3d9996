--- @include "queue/count"
--- @hooks strand

--- So many that stood behind others in this group, a strand or another policy's, are gone.
local function shares_fewer(base, group, count)
  local level = string.match(group, '^(%d)%.')
  if level and count_up(base .. 'lined', level, -count) == 0 then redis.call('HDEL', base .. 'lined', level) end
end
