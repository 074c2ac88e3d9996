--- @include "levels"

--- Rounds that one call spends on cancelled elements before it says there is more to come.
local TAKE_ROUNDS = 20
local TAKE_READY, TAKE_BOTH = { 'ready:' }, { 'due:', 'ready:' }

--- Take up to `want` jobs off the heads, highest level first, oldest first, within `room` bytes (nil: no limit).
--- `promoted`: whether the queue ever had due jobs. With `empty` hands the first job always fits (X-11). Returns {id,
--- value, ...}, the number taken, their bytes, the id of a job that does not fit, and whether the rounds ran out.
local function take_heads(base, levels, promoted, want, room, empty)
  local jobs_key = base .. 'jobs'
  local out, count, bytes, rounds = {}, 0, 0, 0
  for _, level in ipairs(levels_list(levels)) do
    for _, kind in ipairs(promoted and TAKE_BOTH or TAKE_READY) do
      local key = base .. kind .. level
      while count < want do
        local ids = redis.call('LPOP', key, want - count)
        if not ids then break end
        rounds = rounds + 1
        local values = redis.call('HMGET', jobs_key, unpack(ids))
        local cancelled, tight = {}, nil
        for i, id in ipairs(ids) do
          local value = values[i]
          if value and string.byte(value) ~= 33 then
            local size = #value
            if room and bytes + size > room and not (empty and count == 0) then
              -- what does not fit goes back to the head as it was, with all behind it
              tight = id
              local rest = {}
              for j = #ids, i, -1 do rest[#rest + 1] = ids[j] end
              redis.call('LPUSH', key, unpack(rest))
              break
            end
            bytes = bytes + size
            count = count + 1
            out[2 * count - 1] = id
            out[2 * count] = value
          elseif value then
            cancelled[#cancelled + 1] = id
          end
        end
        if #cancelled > 0 then
          redis.call('HDEL', jobs_key, unpack(cancelled))
          redis.call('HINCRBY', base .. 'meta', 'marked', -#cancelled)
        end
        if tight then return out, count, bytes, tight, false end
        if rounds >= TAKE_ROUNDS then return out, count, bytes, nil, true end
      end
      if count >= want then return out, count, bytes, nil, false end
    end
  end
  return out, count, bytes, nil, false
end
