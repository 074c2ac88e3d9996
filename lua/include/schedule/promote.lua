--- @include "schedule/member"

--- Scheduled jobs that are due become ready at the head of their level, in due order, equal times in the order of
--- their enqueue. Their members say all that this needs: no job is read. Two kinds go elsewhere, `returns_to` knows
--- them: those that kept their places (parked ones, and crashed ones that had to wait) back there, and retries that
--- asked for the tail behind everything. A due list per level stands before its ready list, so that promotion never
--- walks a backlog.

--- Jobs that one call promotes at the most, and at the least where so many are due.
local PROMOTE_MAX, PROMOTE_MIN = 256, 64

--- What is due and to be promoted now. `want`: how many jobs this call will take; twice as many are promoted, so that a
--- worker that wants few does not wait long, and a schedule empties faster than it is worked off.
local function promote_members(base, now, want)
  local most = math.max(PROMOTE_MIN, math.min(2 * want, PROMOTE_MAX))
  return redis.call('ZRANGEBYSCORE', base .. 'scheduled', '-inf', string.format('%d', now), 'LIMIT', '0', most)
end

--- The level of a member. What is no such member is put where it harms nobody: who pulls finds no job of that name.
local function promote_level(member)
  return 99 - (string.match(member, '^%d%d') or 95)
end

--- Promote these members; returns how many, and how many more were due and must not be delivered any more. `queue` =
--- {now=, levels=, promoted=}: its levels in use, and whether it ever had due jobs, are brought up to date. `taker`: the
--- consumer that looks for work now.
local function promote_due(base, queue, members, taker)
  local count, gone = #members, 0
  if count == 0 then return 0, 0 end
  --- @include "order/levels"
  --- @include "consumer/browsers"
  redis.call('ZREMRANGEBYRANK', base .. 'scheduled', '0', string.format('%d', count - 1))
  --- @if eligible
  --- @include "schedule/promote_eligible"
  members = promote_eligible(base, queue, members, taker)
  gone, count = count - #members, #members
  if count == 0 then return 0, gone end
  --- @end
  --- @each ripe(base, members)
  if redis.call('EXISTS', base .. 'returns_to') == 1 then
    --- @include "schedule/promote_special"
    members = promote_special(base, queue, members)
  end
  --- @if displace
  queue.taker = taker
  --- @end
  --- @if shelf
  --- @include "schedule/promote_shelf"
  members = promote_shelf(base, queue, members)
  --- @end
  local lists, sub, prefix, waiting, last = {}, string.sub, nil, nil, 0
  for i = 1, #members do
    local member = members[i]
    if sub(member, 1, 2) ~= prefix then
      prefix = sub(member, 1, 2)
      local level = promote_level(member)
      waiting = lists[level] or {}
      lists[level] = waiting
      last = #waiting
    end
    last = last + 1
    waiting[last] = sub(member, MEMBER_PREFIX + 1)
  end
  queue.levels = levels_use(base .. 'meta', queue.levels, lists)
  for level, ids in pairs(lists) do
    local key = base .. 'due:' .. level
    local before = redis.call('LINDEX', key, '-1')
    if before then
      --- @include "order/append_sorted"
      append_sorted(base, key, before, ids)
    else
      redis.call('RPUSH', key, unpack(ids))
    end
  end
  if not queue.promoted then
    redis.call('HSET', base .. 'meta', 'promoted', '1')
    queue.promoted = '1'
  end
  browsers_tell(base)
  --- @if trim
  local left
  --- @each left = trim(base, queue)
  if left then count = math.min(count, left) end
  --- @end
  --- @if shelf
  count = count - (queue.kept_back or 0)
  --- @end
  return count, gone
end
