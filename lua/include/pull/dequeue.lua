--- @include "queue/count"
--- @if eligible
--- @include "job/eligible"
--- @end

--- Rounds that one call spends on cancelled elements before it says there is more to come.
local DEQUEUE_ROUNDS = 20

--- Jobs that must not be delivered any more: so many end a call, which then says the same.
local DEQUEUE_DROPPED = 200

--- Take jobs off one list until `taken` holds `want`. True where the call is to take no more.
local function dequeue_list(base, key, want, room, empty, taken)
  local jobs, ids, count, bytes = taken.jobs, taken.ids, taken.count, taken.bytes
  local done = true
  while count < want do
    local heads = redis.call('LPOP', key, want - count)
    if not heads then
      done = false
      break
    end
    taken.rounds = taken.rounds + 1
    taken[2 * taken.rounds - 1], taken[2 * taken.rounds] = key, heads
    local values = redis.call('HMGET', base .. 'jobs', unpack(heads))
    --- @if eligible
    heads, values = eligible_of(heads, values, taken.now, taken.dropped)
    --- @end
    local cancelled
    for i = 1, #heads do
      local id, value = heads[i], values[i]
      if value and string.byte(value) ~= 33 then
        local size = #value
        if room and bytes + size > room and not (empty and count == 0) then
          -- what does not fit goes back to the head as it was, with all behind it
          taken.tight = id
          local rest = {}
          for j = #heads, i, -1 do rest[#rest + 1] = heads[j] end
          redis.call('LPUSH', key, unpack(rest))
          taken.back = #rest
          break
        end
        bytes = bytes + size
        count = count + 1
        ids[count] = id
        jobs[2 * count - 1] = id
        jobs[2 * count] = value
      elseif value then
        cancelled, taken.marks = cancelled or {}, taken.marks or {}
        cancelled[#cancelled + 1] = id
        taken.marks[#taken.marks + 1] = id
        taken.marks[#taken.marks + 1] = value
      end
    end
    if cancelled then
      redis.call('HDEL', base .. 'jobs', unpack(cancelled))
      taken.unmarked = #taken.marks
      count_up(base .. 'meta', 'marked', -#cancelled)
    end
    taken.more = taken.rounds >= DEQUEUE_ROUNDS
    --- @if eligible
    taken.more = taken.more or #taken.dropped >= 2 * DEQUEUE_DROPPED
    --- @end
    if taken.tight or taken.more then break end
  end
  taken.count, taken.bytes = count, bytes
  return done
end

--- Take up to `want` jobs off the heads, highest level first, oldest first, within `room` bytes (nil: no limit).
--- `promoted`: whether the queue ever had due jobs. `empty`: the consumer holds nothing, and the first job always fits
--- (X-11). `taken` = {jobs=, ids=, dropped=, count=, bytes=, rounds=, now=, ...} gets what is taken, {id, value, ...} of
--- those `dropped` that must not be delivered any more, and what undoes it: each round's key and ids in turn, how many
--- of the last round's are `back` at the head, and {id, value, ...} of `marks`, of which the first `unmarked` were
--- deleted. Returns {id, value, ...}, their ids, their bytes, the id of a job that does not fit, and whether the rounds
--- ran out.
local function dequeue_heads(base, levels, promoted, want, room, empty, taken)
  for level in string.gmatch(levels, '%d+') do
    if promoted and dequeue_list(base, base .. 'due:' .. level, want, room, empty, taken)
      or dequeue_list(base, base .. 'ready:' .. level, want, room, empty, taken) then
      break
    end
  end
  return taken.jobs, taken.ids, taken.bytes, taken.tight, taken.more, taken.dropped
end
