--- Of which parents a deferred job has heard, where nobody wants what they left: one bit for each, by its place.

--- The bytes that are read and written in one piece: for each run of places of one call, and at the most.
local HEARD_SPAN, HEARD_MOST = 64, 4000

--- Note these places, runs of them: {first, last, ...}. A key of another type stays as it is.
local function heard_note(key, runs)
  local bor, floor, bytes, low, high, count = bit.bor, math.floor, {}, math.huge, -1, 0
  for i = 1, #runs, 2 do
    local first, last = runs[i], runs[i + 1]
    local from, to = floor(first / 8), floor(last / 8)
    for at = from, to do
      -- the highest bit of a byte is that of its first place
      local mask = at == from and 2 ^ (8 - first % 8) - 1 or 255
      if at == to then mask = mask - 2 ^ (7 - last % 8) + 1 end
      bytes[at] = bor(bytes[at] or 0, mask)
    end
    low, high, count = math.min(low, from), math.max(high, to), count + to - from + 1
  end
  if high - low > math.min(count + HEARD_SPAN * #runs, HEARD_MOST) then
    local words = {}
    for at, mask in pairs(bytes) do
      for within = 0, 7 do
        if mask % 2 ^ (8 - within) >= 2 ^ (7 - within) then
          for _, word in ipairs({ 'SET', 'u1', string.format('%d', 8 * at + within), '1' }) do words[#words + 1] = word end
        end
      end
    end
    redis.pcall('BITFIELD', key, unpack(words))
  elseif high >= 0 then
    -- near each other, as they mostly are: this costs a third of BITFIELD
    local first, byte = string.format('%d', low), string.byte
    local before = redis.pcall('GETRANGE', key, first, string.format('%d', high))
    if type(before) ~= 'string' then return end
    local after = {}
    for at = low, high do after[at - low + 1] = bor(byte(before, at - low + 1) or 0, bytes[at] or 0) end
    redis.pcall('SETRANGE', key, first, string.char(unpack(after)))
  end
end

--- Whether all of so many are noted.
local function heard_all(key, total)
  local first = redis.pcall('BITPOS', key, '0')
  return type(first) == 'number' and first >= total
end

--- Which of these places are noted, {true or false, ...}.
local function heard_which(key, places)
  local words, found = {}, {}
  for i, place in ipairs(places) do words[3 * i - 2], words[3 * i - 1], words[3 * i] = 'GET', 'u1', place end
  for i, bit in ipairs(redis.call('BITFIELD', key, unpack(words))) do found[i] = bit == 1 end
  return found
end
