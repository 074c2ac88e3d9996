--- @hooks awaits
--- @include "job/value"

--- The jobs that these ids are derived from, and of each {place, '', place, '', ...}. Most ids have the same.
local function flows_done_members(gone)
  local order, members, last, entries, count = {}, {}, nil, nil, 0
  local match = string.match
  for i = 1, #gone do
    local parent, place = match(gone[i], '^(.+)%.(%d+)$')
    if parent then
      if parent ~= last then
        if not members[parent] then order[#order + 1], members[parent] = parent, {} end
        last, entries = parent, members[parent]
        count = #entries
      end
      entries[count + 1], entries[count + 2] = place, ''
      count = count + 2
    end
  end
  return order, members
end

--- Those of a job's members that have places among so many: an id may look derived and not be so.
local function flows_done_below(entries, total)
  local digits, kept = #string.format('%d', total), 0
  for i = 1, #entries, 2 do
    local place = entries[i]
    if #place < digits or tonumber(place) < total then
      entries[kept + 1], kept = place, kept + 2
    end
  end
  for i = #entries, kept + 1, -1 do entries[i] = nil end
  return entries
end

--- These jobs are done, and their values are about to go. `said`, `arguments`: of the settle. A job whose id is derived
--- from that of one that waits counts for it: so the values of what is done need not be read.
local function flows_done(base, queue, gone, said, arguments)
  local edges = redis.call('EXISTS', base .. 'edges') == 1
  if not edges and redis.call('EXISTS', base .. 'deferred') == 0 then return end
  local order, members = flows_done_members(gone)
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
      local total = tonumber(totals[o])
      local entries = flows_done_below(members[parent], total)
      for i = 1, its.mode ~= 'n' and #entries or 0, 2 do
        entries[i + 1] = FLOWS.left({ ok = true, result = results[parent .. '.' .. entries[i]] or '' })
      end
      if FLOWS.gather(base, parent, entries) == total and not its.open then
        full[#full + 1] = { id = parent, job = value_parse(value), its = its }
      end
    end
  end
  if full[1] then
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
