--- @include "queue/constants"
--- @include "queue/sound_type"
--- @include "queue/sound_consumers"

--- Whether the consumers that an enqueue may notify of its jobs can be notified.

--- An error reply where one of their keys is of another type, else nil. `able`: waiting consumers. `queue` = {timer=,
--- ranked=, browsing=}.
local function enqueue_sound(base, able, queue)
  local names = redis.call('ZREVRANGE', base .. 'interested', '0', '0')
  if queue.timer then names[#names + 1] = queue.timer end
  local function add(some)
    for _, name in ipairs(some) do names[#names + 1] = name end
  end
  add(able)
  local fault = sound_type(base, 'notified', 'zset') or sound_type(base, 'browsers', 'set')
  if fault then return fault end
  --- @each waiters(base, names)
  if queue.ranked then add(redis.call('ZRANGE', base .. 'notified', '0', WAKE_LAST)) end
  if queue.browsing then add(redis.call('SMEMBERS', base .. 'browsers')) end
  return sound_consumers(base, names)
end
