--- @include "queue/constants"

--- Consumers that go before others, where not each of them takes every job (Q-45): who is ahead is asked set by set.

--- The priority in a score of `interested`.
local function ahead_priority(score)
  return -math.floor(tonumber(score) / 68719476736)
end

--- Those that were notified, may still take a job, and are not `except`: {{priority, what it takes from}, ...}; `field`:
--- of a consumer's hash, which says from what, "0" where it does not.
local function ahead_notified(base, field, except)
  local notified = {}
  for _, name in ipairs(redis.call('ZRANGE', base .. 'notified', '0', WAKE_LAST)) do
    if name ~= except then
      local row = redis.call('HMGET', base .. 'consumer:' .. name, 'priority', 'jobs', field)
      if (tonumber(row[2]) or 0) > redis.call('LLEN', base .. 'held:' .. name) then
        notified[#notified + 1] = { tonumber(row[1]) or 0, row[3] or '0' }
      end
    end
  end
  return notified
end
