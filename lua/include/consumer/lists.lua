--- @include "queue/count"

--- A consumer is in exactly one of interested, notified, not_interested, browsers; field `state` of its hash says
--- which.

--- The next renewal passes over a notified consumer that has not pulled by then (X-02).
local NOTIFIED_MS = 5000

--- Move a consumer to a list; where it joins interested it goes to the tail of its priority. `held_bytes`: its account,
--- where that changes too.
local function consumer_lists_move(base, now, consumer, from, to, priority, held_bytes)
  --- @if waits
  if from == 'interested' and to ~= from then
    --- @each waits(base, consumer)
  end
  --- @end
  if from == 'interested' or from == 'notified' then
    redis.call('ZREM', base .. from, consumer)
  elseif from and from ~= '' then
    redis.call('SREM', base .. from, consumer)
  end
  if to == 'interested' then
    local turn, rank = count_up(base .. 'meta', 'turn', 1), tonumber(priority) or 0
    redis.call('ZADD', base .. to, turn - (rank == rank and rank or 0) * 68719476736, consumer)
    --- @if waits
    --- @each waits(base, consumer, turn - (rank == rank and rank or 0) * 68719476736)
    --- @end
  elseif to == 'notified' then
    redis.call('ZADD', base .. to, now + NOTIFIED_MS, consumer)
  else
    redis.call('SADD', base .. to, consumer)
  end
  if held_bytes then
    redis.call('HSET', base .. 'consumer:' .. consumer, 'state', to, 'held_bytes', held_bytes)
  else
    redis.call('HSET', base .. 'consumer:' .. consumer, 'state', to)
  end
end
