--- @include "order/levels"
--- @include "order/member"
--- @include "order/score"
--- @include "queue/constants"

--- The enqueue time, ms, of the oldest of the ready jobs in the sorted sets `heads`, or 0: over all levels, of those
--- that were due and of the others; of those with sort keys that of the first one.
local function oldest_heads(base, heads, levels)
  local ids = {}
  for _, key in ipairs(heads) do
    for _, level in ipairs(levels_list(levels)) do
      local least = (9 - level) * SCORE_LEVEL
      for _, from in ipairs({ least, least + SCORE_READY }) do
        local first = redis.call(
          'ZRANGEBYSCORE', key, string.format('%d', from), '(' .. string.format('%d', from + SCORE_READY), 'LIMIT', 0, 1
        )[1]
        if first then ids[#ids + 1] = member_id(first) end
      end
    end
  end
  local oldest = 0
  if #ids > 0 then
    for _, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(ids))) do
      local enqueued = value and tonumber(string.match(value, '^%d+,(-?%d+)'))
      if enqueued and (oldest == 0 or enqueued + EPOCH < oldest) then oldest = enqueued + EPOCH end
    end
  end
  return oldest
end
