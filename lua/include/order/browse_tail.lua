--- @include "order/sort_key"

--- The places behind all that waits in the lists now, into `seen`: in the lists of ordinary jobs behind the last position
--- that was given, so that what comes back to an earlier place is behind the browser (Q-04); in those of due jobs behind
--- the last one that stands there.
local function browse_tail(base, levels, seen)
  local last = tonumber(redis.call('HGET', base .. 'meta', 'seq')) or 0
  for _, level in ipairs(levels) do
    seen[level .. 'r'] = { position = last, due = 0 }
    local id = redis.call('LINDEX', base .. 'due:' .. level, -1)
    local place = id and sort_key_read(redis.call('HGET', base .. 'jobs', id))
    if place then seen[level .. 'd'] = place end
  end
end
