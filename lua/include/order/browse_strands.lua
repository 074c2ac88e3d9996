--- @include "order/browse_heads"

--- Pages of the ready jobs that stand behind the heads of strands, strand by strand, each in its order.

--- Strands that one page looks into: each has a job, and a page at most 500.
local BROWSE_STRANDS = 1000

--- Whether this, of what has jobs behind others, is a strand: "<level>.<share>".
local function browse_strands_is(group)
  return string.find(group, '^%d%.') ~= nil
end

local function browse_strands_first(base, from)
  return redis.call('ZRANGEBYLEX', base .. 'blocked', from, '+', 'LIMIT', '0', '1')[1]
end

--- The next of them, behind the place that the cursor says, "l<score>.<position>.<strand>": into `out`, which holds `limit`
--- jobs; the new place into `parts`.
local function browse_strands(base, cursor, limit, out, parts)
  local score, position, strand = string.match(cursor, 'l(%d+)%.(%d+)%.([^,]*)')
  for _ = 1, BROWSE_STRANDS do
    local room = limit - #out / 2
    if room <= 0 then break end
    local next_ = browse_strands_first(base, strand and '[' .. strand or '-')
    local members = {}
    if next_ and next_ == strand and browse_strands_is(strand) then
      local key, from = base .. 'group:' .. strand, 0
      if score ~= '0' then from = browse_heads_index(key, score, browse_heads_prefix(score, position, '')) end
      local some = redis.call('ZRANGE', key, from, from + room - 1, 'WITHSCORES')
      for i = 1, #some, 2 do members[#members + 1], score = some[i], some[i + 1] end
      if #members > 0 then position = member_position(members[#members]) end
      browse_heads_members(base, members, out)
    end
    if #members < room then
      if next_ == strand then next_ = browse_strands_first(base, strand and '(' .. strand or '-') end
      if not next_ then break end
      score, position, strand = '0', '0', next_
    end
  end
  if strand then parts[#parts + 1] = string.format('l%s.%s.%s', score, position, strand) end
end

--- The place behind all strands, into `parts`.
local function browse_strands_tail(base, parts)
  local strand = redis.call('ZREVRANGEBYLEX', base .. 'blocked', '(:', '-', 'LIMIT', '0', '1')[1]
  local last = strand and browse_strands_is(strand) and redis.call('ZREVRANGE', base .. 'group:' .. strand, '0', '0', 'WITHSCORES')
  if last and last[1] then
    parts[#parts + 1] = string.format('l%s.%d.%s', last[2], member_position(last[1]), strand)
  end
end
