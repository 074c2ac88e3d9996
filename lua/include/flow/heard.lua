--- Of which parents a deferred job has heard, where nobody wants what they left: one bit for each, by its place.

--- The bits that one number sets, which is exact as far as that; and the most words of one command.
local HEARD_BITS, HEARD_WORDS = 50, 4000

--- Note these places, runs of them: {first, last, ...}. A key of another type stays as it is.
local function heard_note(key, runs)
  local words, count, min, format = {}, 0, math.min, string.format
  for i = 1, #runs, 2 do
    local first, last = runs[i], runs[i + 1]
    while first <= last do
      local bits, width, ones = min(last - first + 1, HEARD_BITS), 'u1', '1'
      if bits > 1 then width, ones = format('u%d', bits), format('%d', 2 ^ bits - 1) end
      words[count + 1], words[count + 2], words[count + 3], words[count + 4] = 'SET', width, first, ones
      count, first = count + 4, first + bits
      if count == HEARD_WORDS then
        redis.pcall('BITFIELD', key, unpack(words))
        words, count = {}, 0
      end
    end
  end
  if count > 0 then redis.pcall('BITFIELD', key, unpack(words)) end
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
