--- @include "size/note"
--- @include "schedule/member"
--- @include "consumer/most"

--- A queue gets its first limit in bytes: the jobs that are there already are noted too.

--- Jobs that it may have then: they are all looked at in one step.
local BUILD_MOST = 10000

--- An error reply where this cannot be, else nil. `option`: what is configured.
local function size_build_fault(base, option)
  if redis.call('HGET', base .. 'meta', 'weighed') == '1' then return nil end
  local there = redis.call('HLEN', base .. 'jobs')
  if there <= BUILD_MOST then return nil end
  return redis.error_reply(string.format('CONFLICT %s is the first limit in bytes, and the queue has %d jobs: it is set while '
    .. 'it has at most %d', option, there, BUILD_MOST))
end

--- Note all jobs that count: what waits, of that what is `ready`, or with what is `held`. Once in a queue's life.
local function size_build(base, ready, held)
  if redis.call('HGET', base .. 'meta', 'weighed') == '1' then return end
  local others = {}
  for _, id in ipairs(redis.call('ZRANGE', base .. 'dead', '0', '-1')) do others[id] = true end
  for _, consumer in ipairs(held and {} or redis.call('ZRANGE', base .. 'consumers', '0', CONSUMERS_LAST)) do
    for _, id in ipairs(redis.call('LRANGE', base .. 'held:' .. consumer, '0', '-1')) do others[id] = true end
  end
  for _, member in ipairs(ready and redis.call('ZRANGE', base .. 'scheduled', '0', '-1') or {}) do
    others[string.sub(member, MEMBER_PREFIX + 1)] = true
  end
  local ids = redis.call('HKEYS', base .. 'jobs')
  for first = 1, #ids, 500 do
    local last, stored = math.min(first + 499, #ids), {}
    for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids, first, last))) do
      local id = ids[first + i - 1]
      if not others[id] and string.byte(value) ~= 33 then
        stored[#stored + 1] = id
        stored[#stored + 1] = value
      end
    end
    size_note(base, stored)
  end
  redis.call('HSET', base .. 'meta', 'weighed', '1')
end
