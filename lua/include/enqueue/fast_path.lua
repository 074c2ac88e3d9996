--- @include "queue/constants"

--- The enqueue of one ordinary job, as a web app does it all day: into the queue, or to the consumer that
--- waits for it. The steps are those of `enqueue`, without its lists.

--- `taker`: the first of the waiting consumers, false where none waits. `timer`: who watches the schedule. Returns the
--- reply, or nil where the long way is to be gone: nothing is changed then.
local function enqueue_fast_path(base, now, taker, timer, id, envelope)
  if redis.call('HEXISTS', base .. 'ended', id) + redis.call('HEXISTS', base .. 'ended:old', id) > 0 then
    return { now, 0, { 0 }, '' }
  end
  local window
  if taker then
    if taker == timer or redis.call('EXISTS', base .. 'ready:4', base .. 'due:4', base .. 'scheduled') > 0 then
      return nil
    end
    window = redis.call('HMGET', base .. 'consumer:' .. taker, 'jobs', 'bytes', 'held_bytes')
    -- who waits has room for a job; where bytes count too, and there are some, they are added up elsewhere
    if not window[1] or window[2] ~= '0' and (window[3] or '0') ~= '0' then return nil end
  end
  local value = string.format('%d,%d;', redis.call('HINCRBY', base .. 'meta', 'seq', '1'), now - EPOCH) .. envelope
  local stored = redis.pcall('HSETNX', base .. 'jobs', id, value)
  if stored ~= 1 then
    -- a live job has this id, or that key is no hash: the position is not taken
    redis.call('HINCRBY', base .. 'meta', 'seq', '-1')
    return stored == 0 and { now, 0, { 0 }, '' } or stored
  end
  local fault
  if taker then
    --- @include "deliver/assign"
    fault = deliver_assign(base, now, taker, window[1], window[2] ~= '0' and string.format('%d', #value), id, value)
  else
    local pushed = redis.pcall('RPUSH', base .. 'ready:4', id)
    fault = type(pushed) == 'table' and pushed
  end
  if fault then
    -- one of their keys is of another type: as if nothing had been
    redis.call('HDEL', base .. 'jobs', id)
    redis.call('HINCRBY', base .. 'meta', 'seq', '-1')
    return fault
  end
  return { now, 1, {}, taker or '' }
end
