--- @include "queue/constants"
--- @include "schedule/member"
--- @hooks strand

--- Heads that are looked at for the oldest job.
local SHARES_LOOKED_AT = '99'

--- What stands behind others of its share is ready like them. Of the oldest job only those are asked that come next.
local function shares_counted(base, counts)
  local fields, levels, behind = counts[2], counts[3], 0
  local lined = redis.call('HGETALL', base .. 'lined')
  for i = 1, #lined, 2 do
    for k = 1, #levels, 2 do
      if levels[k] == tonumber(lined[i]) then
        levels[k + 1] = levels[k + 1] + tonumber(lined[i + 1])
        behind = behind + tonumber(lined[i + 1])
      end
    end
  end
  for i = 1, #fields, 2 do
    if fields[i] == 'blocked' then fields[i + 1] = string.format('%d', math.max(0, (tonumber(fields[i + 1]) or 0) - behind)) end
  end
  local ids = {}
  for i, member in ipairs(counts[9] > 0 and redis.call('ZRANGE', base .. 'heads', '0', SHARES_LOOKED_AT) or {}) do
    ids[i] = string.sub(member, MEMBER_PREFIX + 1)
  end
  for _, value in ipairs(#ids > 0 and redis.call('HMGET', base .. 'jobs', unpack(ids)) or {}) do
    local enqueued = value and tonumber(string.match(value, '^%d+,(-?%d+)'))
    if enqueued and enqueued + EPOCH < counts[9] then counts[9] = enqueued + EPOCH end
  end
  counts[#counts + 1] = 'shares'
  counts[#counts + 1] = redis.call('HLEN', base .. 'strands')
  return counts
end
