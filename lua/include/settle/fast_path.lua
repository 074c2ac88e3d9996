--- @include "queue/clock"
--- @include "queue/constants"
--- @stamp

--- The settle of one job that succeeded and was all that its consumer held: all that workers say whose jobs are not
--- short, or few. The steps are those of `settle`, without its lists.

--- `row`, `mine`: of queue and consumer. `arguments`: those of settle. Returns the reply, or nil where the long way is
--- to be gone: nothing is changed then.
local function settle_fast_path(base, row, consumer, mine, arguments)
  local jobs, bytes, id, result = arguments[3], arguments[4], arguments[9], arguments[11]
  local window = tonumber(jobs)
  if row[1] ~= STAMP or mine[1] ~= arguments[2] or arguments[7] ~= '1' or #arguments ~= (result and 11 or 9)
    or result and arguments[10] ~= '' or not window or window < 0 or not tonumber(bytes) then
    return nil
  end
  local now, rows, since = clock(row[2]), (tonumber(row[12]) or 0) + 1, tonumber(row[7])
  if not since or now - since >= (tonumber(row[8]) or KEEP_MS) or rows > (tonumber(row[9]) or HISTORY_ROWS) then
    return nil
  end
  local held, jobs_key = base .. 'held:' .. consumer, base .. 'jobs'
  local head = redis.call('LPOP', held, '2')
  if not head then return nil end
  if head[1] ~= id or head[2] then
    if head[2] then redis.call('LPUSH', held, head[2]) end
    redis.call('LPUSH', held, head[1])
    return nil
  end

  local special = redis.call('EXISTS', base .. 'scheduled', base .. 'byte_waiters', base .. 'interested', base .. 'errors',
    base .. 'awaited') > 0
  local known = special and redis.call('EXISTS', base .. 'errors', base .. 'awaited') > 0
  redis.call('HDEL', jobs_key, id)
  if known then redis.call('HDEL', base .. 'errors', id) end
  redis.call('HSET', base .. 'meta', 'acked', string.format('%d', (tonumber(row[11]) or 0) + 1), 'history_rows',
    string.format('%d', rows))
  local record = string.format('D%d:', now) .. (result or '')
  redis.call('HSET', base .. 'ended', id, record)
  redis.call('XADD', base .. 'history', '*', 'n', '1', 'b', arguments[6])
  if known and redis.call('HDEL', base .. 'awaited', id) == 1 then
    --- @include "result/waiters"
    waiters_tell(base, id, record)
  end

  -- the next one, or none, where one look tells
  if row[3] == '4' and row[4] ~= '1' and row[5] ~= consumer and row[6] ~= '1' and not row[10] and jobs == mine[4]
    and bytes == mine[5] and window > 0 then
    local ready = base .. 'ready:4'
    local empty
    if jobs == '1' and mine[2] == 'not_interested' and not special then
      local next_ = redis.call('LPOP', ready)
      local value = next_ and redis.call('HGET', jobs_key, next_)
      if value and string.byte(value) ~= 33 then
        redis.call('RPUSH', held, next_)
        if bytes ~= '0' then
          redis.call('HSET', base .. 'consumer:' .. consumer, 'held_bytes', string.format('%d', #value))
        end
        return { now, 'not_interested', -1, {}, '', next_, value }
      end
      -- cancelled while it waited
      if next_ then redis.call('LPUSH', ready, next_) end
      empty = not next_
    else
      empty = redis.call('EXISTS', ready, base .. 'scheduled', base .. 'byte_waiters') == 0
    end
    if empty then
      --- @include "consumer/state"
      local me = { name = consumer, state = mine[2], priority = mine[3] }
      consumer_state_set(base, { now = now }, me, 'interested', bytes ~= '0' and '0')
      return { now, 'interested', -1, {}, '' }
    end
  end
  --- @include "queue/open"
  --- @include "consumer/open"
  --- @include "consumer/window"
  --- @include "pull/pull"
  local queue, me = queue_open(base, row), consumer_open(base, consumer, mine[1], mine)
  window_grant(base, me, jobs, bytes)
  me.held = 0
  local taken, timer = pull_jobs(base, queue, me)
  window_account(base, me, true)
  return { queue.now, me.state, timer, {}, '', unpack(taken) }
end
