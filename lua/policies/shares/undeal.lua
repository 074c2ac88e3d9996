--- @include "order/score"
--- @include "order/sort_key"
--- @hooks deal

--- A pull that met a key of another type is undone: `taken` is what `deal` noted. Strands that were told apart by what they
--- had are as they were; finish tags of strands that have jobs again mean nothing, and go.
local function shares_undeal(base, taken)
  for level, dealt in pairs(taken.dealt or {}) do
    local heads, said, back = {}, {}, 0
    for i = 1, #(dealt.open or {}), 2 do redis.call('ZREM', base .. 'heads', dealt.open[i + 1]) end
    for _, one in ipairs(dealt.touched) do
      heads[#heads + 1] = one.score
      heads[#heads + 1] = one.member
      local place = sort_key_read(one.first)
      if place then
        said[#said + 1] = one.strand
        said[#said + 1] = shares_said(score_of(tonumber(level), place.due, place.position), one.member)
      end
    end
    if #heads > 0 then redis.call('ZADD', base .. 'heads', unpack(heads)) end
    if #said > 0 then redis.call('HSET', base .. 'strands', unpack(said)) end
    for strand, popped in pairs(dealt.popped) do
      local members = {}
      for i = #popped, 1, -1 do members[#members + 1] = popped[i] end
      back = back + #popped / 2
      redis.call('ZADD', base .. 'group:' .. strand, unpack(members))
      redis.call('ZADD', base .. 'blocked', '0', strand)
    end
    if dealt.lined then shares_line(base, tonumber(level), back) end
    for _, strand in ipairs(dealt.over or {}) do redis.call('ZREM', base .. 'served:' .. level, strand) end
    if dealt.lists and dealt.lists.served then
      redis.call('ZADD', base .. 'served:' .. level, dealt.lists.served, level)
    elseif dealt.lists then
      redis.call('ZREM', base .. 'served:' .. level, level)
    end
    if dealt.before then
      redis.call('HSET', base .. 'turns', level, string.format('%d', dealt.before))
    elseif dealt.count then
      redis.call('HDEL', base .. 'turns', level)
    end
  end
end
