--- @include "queue/clock"
--- @include "queue/constants"

--- The settle of one job that succeeded and was all that its consumer held: all that workers say whose jobs are not
--- short, or few. The steps are those of `settle`, without its lists.

--- `row`, `mine`: of queue and consumer; the others as in `settle`. Returns whether the job is settled, and the reply
--- where this way knows the next job too, or an error reply. Where it is not settled, nothing is changed, and neither
--- with an error.
local function settle_fast_path(base, row, mine, consumer, term, jobs, bytes, batch, rows, id, result)
  --- @stamp
  -- fields by their places in `queue_row` and `consumer_row`: a look at each costs less than `unpack`
  local window = tonumber(jobs)
  if row[1] ~= STAMP or mine[1] ~= term or rows ~= '1' or not window or window < 0
    or bytes ~= '0' and not tonumber(bytes) then
    return false
  end
  local now, all = clock(row[2]), (tonumber(row[12]) or 0) + 1
  local since, keep, most = tonumber(row[7]), row[8], row[9]
  if not since or now - since >= (keep and tonumber(keep) or KEEP_MS)
    or all > (most and tonumber(most) or HISTORY_ROWS) then
    return false
  end
  local held, jobs_key = base .. 'held:' .. consumer, base .. 'jobs'
  local head = redis.call('LPOP', held, '2')
  if not head then return false end
  if head[1] ~= id or head[2] then
    if head[2] then redis.call('LPUSH', held, head[2]) end
    redis.call('LPUSH', held, head[1])
    return false
  end

  local special = redis.call('EXISTS', base .. 'scheduled', base .. 'byte_waiters', base .. 'interested',
    base .. 'errors', base .. 'awaited') > 0
  local known = special and redis.call('EXISTS', base .. 'errors', base .. 'awaited') > 0
  local failed, awaited
  if known then
    failed = redis.pcall('HEXISTS', base .. 'errors', id)
    awaited = failed
    if type(failed) ~= 'table' then awaited = redis.pcall('HGET', base .. 'awaited', id) end
    if type(awaited) == 'table' then
      redis.call('LPUSH', held, id)
      return true, awaited
    end
  end
  -- each of these may meet a key of another type, which is an error; what cannot be taken back is the last
  local record = string.format('D%d:', now) .. (result or '')
  local ended = redis.pcall('HSET', base .. 'ended', id, record)
  local entry = (ended == 1 or ended == 0) and redis.pcall('XADD', base .. 'history', '*', 'n', '1', 'b', batch)
  local gone = entry and not entry.err and redis.pcall('HDEL', jobs_key, id)
  if gone ~= 1 and gone ~= 0 then
    --- @include "settle/undone"
    undone_settle(base, consumer, { id }, ended, entry)
    return true, gone or entry or ended
  end
  all = string.format('%d', all)
  redis.call('HSET', base .. 'meta', 'acked', string.format('%d', (tonumber(row[11]) or 0) + 1), 'history_rows', all)
  if failed == 1 then redis.call('HDEL', base .. 'errors', id) end
  if awaited then
    --- @include "result/waiters"
    redis.call('HDEL', base .. 'awaited', id)
    waiters_tell(base, id, record, awaited)
  end

  --- @if timed
  -- who looks for the next one looks for ticks too
  do return true end
  --- @end
  -- the next one, or none, where one look tells; where that meets a key of another type, the way of all others says so
  local levels, paused, timer, ranked, promoted, state = row[3], row[4], row[5], row[6], row[10], mine[2]
  if levels ~= '4' or paused == '1' or timer == consumer or ranked == '1' or promoted or jobs ~= mine[4]
    or bytes ~= mine[5] or window == 0 then
    return true
  end
  --- @if vacated
  local function crowd()
    local crowded
    --- @each crowded = crowded(base)
    return crowded
  end
  local seen, crowded = pcall(crowd)
  if not seen or crowded then return true end
  --- @end
  --- @if overdue
  local function late()
    local overdue
    --- @each overdue = overdue(base, now)
    return overdue
  end
  local met, overdue = pcall(late)
  if not met or overdue then return true end
  --- @end
  local ready = base .. 'ready:4'
  local empty
  if jobs == '1' and state == 'not_interested' and not special then
    local next_ = redis.pcall('LPOP', ready)
    if next_ and next_.err then return true end
    local value = next_ and redis.call('HGET', jobs_key, next_)
    if value and string.byte(value) ~= 33 then
      redis.call('RPUSH', held, next_)
      --- @each taken(base, { next_ })
      if bytes ~= '0' then
        redis.call('HSET', base .. 'consumer:' .. consumer, 'held_bytes', string.format('%d', #value))
      end
      return true, { now, 'not_interested', -1, {}, '', next_, value }
    end
    -- cancelled while it waited
    if next_ then redis.call('LPUSH', ready, next_) end
    empty = not next_
  else
    empty = redis.call('EXISTS', ready, base .. 'scheduled', base .. 'byte_waiters') == 0
  end
  if not empty then return true end
  --- @include "consumer/state"
  local me = { name = consumer, state = state, priority = mine[3] }
  if not pcall(consumer_state_set, base, { now = now }, me, 'interested', bytes ~= '0' and '0') then return true end
  return true, { now, 'interested', -1, {}, '' }
end
