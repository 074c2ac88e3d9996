--- Ids that say which job they count for, "<job>.<place>".

--- What follows each last digit but 9.
local MEMBER_NEXT = { ['0'] = '1', ['1'] = '2', ['2'] = '3', ['3'] = '4', ['4'] = '5', ['5'] = '6', ['6'] = '7', ['7'] = '8',
  ['8'] = '9' }

--- The job that an id is derived from, and its place. nil where the id is not derived.
local function member_read(id)
  local job, digits = string.match(id, '^(.+)%.(%d+)$')
  -- a place is said in one way; no job has so many members that nine digits do not do
  if not job or #digits > 9 or string.byte(digits) == 48 and digits ~= '0' then return nil end
  return job, tonumber(digits)
end

--- What the ids of the next ten members begin with, `place` being the first of them. A number is made text where no digit
--- can be counted up: that costs ten times as much.
local function member_stem_next(stem, job, place)
  local digit = MEMBER_NEXT[string.sub(stem, -1)]
  if digit then return string.sub(stem, 1, -2) .. digit end
  return string.format('%s.%d', job, place / 10)
end

--- The id of the member behind this one, in two parts: all but its last digit, and that. Most members come and end in
--- their order, so who reads many compares each with this one first, and goes on by `MEMBER_NEXT` as far as that has one:
--- a comparison costs a tenth of reading.
local function member_following(id, job, place)
  local stem, digit = string.sub(id, 1, -2), MEMBER_NEXT[string.sub(id, -1)]
  if digit then return stem, digit end
  return member_stem_next(stem, job, place + 1), '0'
end
