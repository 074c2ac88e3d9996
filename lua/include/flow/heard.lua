--- Of which parents a deferred job has heard, where nobody wants what they left: one bit for each, by its place.

--- The bits that one number sets, which is exact as far as that, as words of a command; and the most words of one.
local HEARD_BITS, HEARD_WIDTH, HEARD_ONES, HEARD_WORDS = 50, 'u50', '1125899906842623', 4000

--- Note these places, runs of them: {first, last, ...}. `total`: how many there are, nil where that is not known yet.
--- Returns whether the last one is noted then. A key of another type stays as it is.
local function heard_note(key, runs, total)
  local words, count, format = {}, 0, string.format
  for i = 1, #runs, 2 do
    local first, last = runs[i], runs[i + 1]
    while first <= last do
      local bits, width, ones = HEARD_BITS, HEARD_WIDTH, HEARD_ONES
      if last - first + 1 < bits then
        bits = last - first + 1
        width, ones = format('u%d', bits), format('%d', 2 ^ bits - 1)
      end
      words[count + 1], words[count + 2], words[count + 3], words[count + 4] = 'SET', width, format('%d', first), ones
      count, first = count + 4, first + bits
      if count == HEARD_WORDS then
        redis.pcall('BITFIELD', key, unpack(words))
        words, count = {}, 0
      end
    end
  end
  if total == 0 then return true end
  if total then words[count + 1], words[count + 2], words[count + 3] = 'GET', 'u1', format('%d', total - 1) end
  local said = words[1] and redis.pcall('BITFIELD', key, unpack(words)) or {}
  return total ~= nil and said[#said] == 1
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
