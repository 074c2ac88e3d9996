--- @include "queue/count"
--- @include "schedule/member"
--- @include "order/member"
--- @include "pull/merge"

--- What a purge takes off the places that a queue with groups has beside its lists.

--- Those behind others, group by group: into `ids`, until it holds `limit`.
local function purge_heads_behind(base, ids, limit)
  local taken = 0
  while #ids < limit do
    local group = redis.call('ZRANGE', base .. 'blocked', '0', '0')[1]
    if not group then break end
    local key = base .. 'group:' .. group
    local some = redis.call('ZPOPMIN', key, limit - #ids)
    for i = 1, #some, 2 do ids[#ids + 1] = string.sub(some[i], MEMBER_PREFIX + 1) end
    taken = taken + #some / 2
    --- @each fewer(base, group, #some / 2)
    if redis.call('EXISTS', key) == 1 then break end
    redis.call('ZREM', base .. 'blocked', group)
  end
  if taken > 0 then count_up(base .. 'meta', 'blocked', -taken) end
end

--- Ready ones, best first. `heads`: the keys that they stand in.
local function purge_heads(heads, ids, limit)
  if #ids >= limit or #heads == 0 then return end
  local members, owners = merge_members(heads, limit - #ids)
  for i = 1, #members, 2 do ids[#ids + 1] = member_id(members[i]) end
  merge_set_take(heads, members, owners, #members / 2, {})
end
