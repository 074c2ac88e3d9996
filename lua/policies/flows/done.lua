--- @include "flow/member"

--- The jobs that these ids are derived from, and the places of each, as runs: {first, last, first, last, ...}.
local function flows_done_members(gone)
  local order, members, job, place, runs, at = {}, {}, nil, nil, nil, 0
  local count, i, stem, digit = #gone, 1, nil, nil
  while i <= count do
    local id = gone[i]
    if digit == '0' and i + 9 <= count and table.concat(gone, '\n', i, i + 9) == member_ten(stem) then
      place, i = place + 10, i + 9
      runs[at] = place
      stem, digit = member_following(gone[i], job, place)
    elseif runs and id == stem .. digit then
      place = place + 1
      runs[at], digit = place, MEMBER_NEXT[digit]
      if not digit then stem, digit = member_following(id, job, place) end
    else
      local parent, its = member_read(id)
      if parent then
        if not members[parent] then order[#order + 1], members[parent] = parent, {} end
        job, place, runs = parent, its, members[parent]
        at = #runs + 2
        runs[at - 1], runs[at] = place, place
        stem, digit = member_following(id, job, place)
      end
    end
    i = i + 1
  end
  return order, members
end

--- Of these runs what is among so many places: an id may look derived and not be so.
local function flows_done_below(runs, total)
  local kept = {}
  for i = 1, #runs, 2 do
    if runs[i] < total then kept[#kept + 1], kept[#kept + 2] = runs[i], math.min(runs[i + 1], total - 1) end
  end
  return kept
end

--- These jobs are done, and their values are about to go. `said`, `arguments`: of the settle. A job whose id is derived
--- from that of one that waits counts for it: so the values of what is done need not be read.
local function flows_done(base, queue, gone, said, arguments)
  if redis.call('EXISTS', base .. 'edges', base .. 'deferred') == 0 then return end
  --- @hooks awaits
  local edges, order, members = redis.call('EXISTS', base .. 'edges') == 1, flows_done_members(gone)
  local results = {}
  for i = 1, said.done do
    local at = said.results + 3 * (i - 1)
    results[arguments[at]] = arguments[at + 2]
  end
  local ends, full = {}, {}
  local totals = order[1] and redis.call('HMGET', base .. 'deferred', unpack(order)) or {}
  for o, parent in ipairs(order) do
    local value = totals[o] and redis.call('HGET', base .. 'jobs', parent)
    local its = value and FLOWS.tag(value)
    if its and not its.ids then
      local total, left = tonumber(totals[o]), {}
      local runs = flows_done_below(members[parent], total)
      for i = 1, its.mode ~= 'n' and #runs or 0, 2 do
        for place = runs[i], runs[i + 1] do
          left[#left + 1] = FLOWS.left({ ok = true, result = results[string.format('%s.%d', parent, place)] or '' })
        end
      end
      if FLOWS.gather(base, parent, its, total, runs, left) then
        full[#full + 1] = { id = parent, value = value, its = its }
      end
    end
  end
  if not (full[1] or edges) then return end
  --- @include "flow/ends"
  if full[1] then
    for _, one in ipairs(full) do one.job = value_parse(one.value) end
    for _, one in ipairs(FLOWS.release(base, queue, full)) do ends[#ends + 1] = one end
    if ends[1] then ends = FLOWS.stop(base, queue, ends) end
  end
  if edges then
    for _, id in ipairs(gone) do
      ends[#ends + 1] = { id = id, tags = '', ok = true, result = results[id] or '', state = 'done' }
    end
  end
  FLOWS.tell(base, queue, ends)
end
