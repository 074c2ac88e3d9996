--- @hooks awaits
--- @include "job/value"

--- These jobs are done, and their values are about to go. `said`, `arguments`: of the settle. A job whose id is derived
--- from that of one that waits counts for it: so the values of what is done need not be read.
local function flows_done(base, queue, gone, said, arguments)
  local edges = redis.call('EXISTS', base .. 'edges') == 1
  if not edges and redis.call('EXISTS', base .. 'deferred') == 0 then return end
  local results, places, order, members = {}, {}, {}, {}
  for i = 1, said.done do
    local at = said.results + 3 * (i - 1)
    results[arguments[at]] = arguments[at + 2]
  end
  for i, id in ipairs(gone) do
    local parent, place = string.match(id, '^(.+)%.(%d+)$')
    if parent then
      places[i] = place
      if not members[parent] then
        order[#order + 1], members[parent] = parent, {}
      end
      table.insert(members[parent], i)
    end
  end
  local ends, full = {}, {}
  local totals = order[1] and redis.call('HMGET', base .. 'deferred', unpack(order)) or {}
  for o, parent in ipairs(order) do
    local value = totals[o] and redis.call('HGET', base .. 'jobs', parent)
    local its = value and FLOWS.tag(value)
    if its and not its.ids then
      local entries = {}
      for _, i in ipairs(members[parent]) do
        if tonumber(places[i]) < its.total then
          entries[#entries + 1] = places[i]
          entries[#entries + 1] = its.mode == 'n' and '' or FLOWS.left({ ok = true, result = results[gone[i]] or '' })
        end
      end
      if FLOWS.gather(base, parent, entries) == its.total then
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
