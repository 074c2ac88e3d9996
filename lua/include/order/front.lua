--- @include "order/sort_key"

--- Before all that waits in a level: jobs that were due stand first, by due time, so that a job which is to be the very
--- first one is due before them.

--- The due time, ms, of a job that is to stand there: the time now, or the latest one before those of all that wait, or
--- are due and not promoted yet.
local function order_front(base, now, level)
  local due = now
  local function before(other)
    if other and other - 1 < due then due = math.max(1, other - 1) end
  end
  local first = redis.call('LINDEX', base .. 'due:' .. level, '0')
  local place = first and sort_key_read(redis.call('HGET', base .. 'jobs', first))
  before(place and place.due)
  before(tonumber(redis.call('ZRANGE', base .. 'scheduled', '0', '0', 'WITHSCORES')[2]))
  --- @if heads
  --- @include "order/score"
  local heads
  --- @each heads = heads(base)
  --- @if deal
  -- their scores say whose turn it is
  heads = {}
  --- @end
  local least = (9 - level) * SCORE_LEVEL
  for _, key in ipairs(heads) do
    local score = redis.call('ZRANGEBYSCORE', key, string.format('%d', least),
      '(' .. string.format('%d', least + SCORE_READY), 'WITHSCORES', 'LIMIT', '0', '1')[2]
    before(score and tonumber(score) - least)
  end
  --- @end
  return due
end
