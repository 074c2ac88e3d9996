--- @include "flow/member"

--- For which jobs many ids count that are said at once, and for which of their places. Most members end in their order,
--- a hundred in a call, so whole tens are compared at a time; others are near them, and have a ten that was read already.

--- The ids of ten members that follow each other, a line each.
local function places_ten(stem)
  return stem .. '0\n' .. stem .. '1\n' .. stem .. '2\n' .. stem .. '3\n' .. stem .. '4\n' .. stem .. '5\n' .. stem
    .. '6\n' .. stem .. '7\n' .. stem .. '8\n' .. stem .. '9'
end

--- What stands in a list from `i` on, ten of it, in the same way.
local function places_lines(ids, i)
  return ids[i] .. '\n' .. ids[i + 1] .. '\n' .. ids[i + 2] .. '\n' .. ids[i + 3] .. '\n' .. ids[i + 4] .. '\n' .. ids[i + 5]
    .. '\n' .. ids[i + 6] .. '\n' .. ids[i + 7] .. '\n' .. ids[i + 8] .. '\n' .. ids[i + 9]
end

--- How far the ids behind `i`, which has this place, follow it: the index and the place of the last one that does.
local function places_follow(ids, i, stem, job, place)
  local digit = MEMBER_NEXT[string.sub(ids[i], -1)]
  while true do
    if digit == '1' and ids[i + 9] and places_lines(ids, i) == places_ten(stem) then
      i, place, digit = i + 9, place + 9, nil
    end
    while digit and ids[i + 1] == stem .. digit do
      i, place, digit = i + 1, place + 1, MEMBER_NEXT[digit]
    end
    if digit or not ids[i + 1] then return i, place end
    stem = member_stem_next(stem, job, place + 1)
    if ids[i + 1] ~= stem .. '0' then return i, place end
    i, place, digit = i + 1, place + 1, '1'
  end
end

--- {job, ...}, and of each its runs, {first, last, at, ...}: places that follow each other, as the ids do from index `at`
--- on. What is derived from no job is left out.
local function places_read(ids)
  local order, members, tens, owners = {}, {}, {}, {}
  local i, count, sub, byte = 1, #ids, string.sub, string.byte
  while i <= count do
    local id = ids[i]
    local stem, digit = sub(id, 1, -2), (byte(id, -1) or 0) - 48
    local ten, job, place = tens[stem], nil, nil
    if ten and digit >= 0 and digit <= 9 then
      job, place = owners[stem], ten + digit
    else
      job, place = member_read(id)
      if job then tens[stem], owners[stem] = place - digit, job end
    end
    if job then
      local runs = members[job]
      if not runs then
        runs = {}
        members[job], order[#order + 1] = runs, job
      end
      local at, first = i, place
      i, place = places_follow(ids, i, stem, job, place)
      local n = #runs
      runs[n + 1], runs[n + 2], runs[n + 3] = first, place, at
    end
    i = i + 1
  end
  return order, members
end

--- The same runs as {first, last, first, last, ...}, in the order of their places, of which none is `total` or more: an
--- id may look derived and not be so.
local function places_merged(runs, total)
  if not runs[4] then return runs[1] < total and { runs[1], math.min(runs[2], total - 1) } or {} end
  local firsts, lasts, merged, n = {}, {}, {}, 0
  for i = 1, #runs, 3 do
    local first = runs[i]
    if first < total then firsts[#firsts + 1], lasts[first] = first, math.min(runs[i + 1], total - 1) end
  end
  table.sort(firsts)
  for _, first in ipairs(firsts) do
    if n > 0 and merged[n] == first - 1 then
      merged[n] = lasts[first]
    else
      merged[n + 1], merged[n + 2] = first, lasts[first]
      n = n + 2
    end
  end
  return merged
end
