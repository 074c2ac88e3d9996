--- @include "consumer/lists"

--- What a pull says about its own consumer.

--- Where the pull leaves its consumer. A wake-up that it has not read is answered by this very pull. `held_bytes`: its
--- account, where that may have changed and the consumer moves.
local function consumer_state_set(base, queue, consumer, to, held_bytes)
  local from = consumer.state
  if to == from and to ~= 'interested' and to ~= 'notified' then return end
  if from == 'notified' and to ~= 'notified' then redis.call('LREM', base .. 'wake:' .. consumer.name, 0, 'w') end
  consumer_lists_move(base, queue.now, consumer.name, from, to, consumer.priority, held_bytes)
  consumer.state = to
end

--- A consumer that is told of no due time does not watch the schedule any more.
local function consumer_state_drop_timer(base, queue, consumer)
  if queue.timer ~= consumer.name then return end
  redis.call('HDEL', base .. 'meta', 'timer')
  queue.timer = false
end
