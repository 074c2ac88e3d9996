--- @include "consumer/lists"

--- What a pull says about its own consumer.

--- What a write answers, or the error that it meets. Where it is the first one of its step and the server is over its
--- memory limit, it is made behind one that frees (README).
local function consumer_state_write(base, ...)
  local said = redis.pcall(...)
  if type(said) ~= 'table' or not said.err or not string.find(said.err, 'OOM ', 1, true) then return said end
  redis.call('HDEL', base .. 'meta', 'oom')
  return redis.pcall(...)
end

--- Where the pull leaves its consumer, whose hash was read before. A wake-up that it has not read is answered by this
--- very pull. `held_bytes`: its account, where that may have changed and the consumer moves. Raises an error where
--- something else has written one of the lists: nothing is changed then.
local function consumer_state_set(base, queue, consumer, to, held_bytes)
  local from, name = consumer.state, consumer.name
  if to == from and to ~= 'interested' and to ~= 'notified' then return end
  local list, turn, moved = base .. to, nil, nil
  if to == 'interested' then
    turn = consumer_state_write(base, 'HINCRBY', base .. 'meta', 'turn', '1')
    if type(turn) == 'table' then turn = count_up(base .. 'meta', 'turn', 1) end
    local rank = tonumber(consumer.priority) or 0
    moved = redis.pcall('ZADD', list, turn - (rank == rank and rank or 0) * 68719476736, name)
  elseif to == 'notified' then
    moved = consumer_state_write(base, 'ZADD', list, queue.now + NOTIFIED_MS, name)
  else
    moved = consumer_state_write(base, 'SADD', list, name)
  end
  local added, unread = moved, nil
  --- @if waits
  if type(moved) ~= 'table' and (to == 'interested' or from == 'interested') then
    local rank, fault = tonumber(consumer.priority) or 0, nil
    --- @each fault = waits(base, name, to == 'interested' and turn - (rank == rank and rank or 0) * 68719476736)
    moved = fault or moved
  end
  --- @end
  if from == 'notified' and to ~= from and type(moved) ~= 'table' then
    moved = redis.pcall('LREM', base .. 'wake:' .. name, 0, 'w')
    unread = moved
  end
  if from and from ~= '' and to ~= from and type(moved) ~= 'table' then
    moved = redis.pcall((from == 'interested' or from == 'notified') and 'ZREM' or 'SREM', base .. from, name)
  end
  if type(moved) == 'table' then
    --- @include "consumer/state_undone"
    state_undone(base, name, to, { turn = turn, added = added, unread = unread })
    --- @each waits(base, name, from == 'interested' and redis.call('ZSCORE', base .. 'interested', name))
    error(moved)
  end
  if held_bytes then
    redis.call('HSET', base .. 'consumer:' .. name, 'state', to, 'held_bytes', held_bytes)
  else
    redis.call('HSET', base .. 'consumer:' .. name, 'state', to)
  end
  consumer.state = to
end

--- A consumer to which no due time is returned does not watch the schedule any more.
local function consumer_state_drop_timer(base, queue, consumer)
  if queue.timer ~= consumer.name then return end
  redis.call('HDEL', base .. 'meta', 'timer')
  queue.timer = false
end
