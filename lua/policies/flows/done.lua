--- These jobs are done, and their values are about to go. `said`, `arguments`: of the settle. A job whose id is derived
--- from that of one that waits counts for it: so the values of what is done need not be read.
local function flows_done(base, queue, gone, said, arguments)
  if not queue.waits then return end
  --- @include "flow/waits"
  --- @include "flow/places"
  local results, full, ends = {}, {}, {}
  for i = 1, said.done do
    local at = said.results + 3 * (i - 1)
    results[arguments[at]] = arguments[at + 2]
  end
  local order, members = places_read(gone)
  local totals = order[1] and redis.call('HMGET', base .. 'deferred', unpack(order)) or {}
  for o, parent in ipairs(order) do
    local value = totals[o] and redis.call('HGET', base .. 'jobs', parent)
    local its = value and FLOWS.tag(value)
    if its and not its.ids then
      local runs, total, left = members[parent], tonumber(totals[o]), {}
      for i = 1, its.mode ~= 'n' and #runs or 0, 3 do
        for at = runs[i + 2], runs[i + 2] + math.min(runs[i + 1], total - 1) - runs[i] do
          local id = gone[at]
          left[#left + 1] = string.sub(id, #parent + 2)
          left[#left + 1] = FLOWS.left({ ok = true, result = results[id] or '' })
        end
      end
      if its.mode == 'n' then runs = places_merged(runs, total) end
      if FLOWS.gather(base, parent, its, total, runs, left) then
        full[#full + 1] = { id = parent, value = value, its = its }
      end
    end
  end
  if full[1] or queue.waits == 'named' then
    --- @include "flow/ends"
    for _, one in ipairs(full) do one.job = value_parse(one.value) end
    if full[1] then ends = FLOWS.release(base, queue, full) end
    if ends[1] then ends = FLOWS.stop(base, queue, ends) end
    if queue.waits == 'named' then
      for _, id in ipairs(gone) do
        ends[#ends + 1] = { id = id, tags = '', ok = true, result = results[id] or '', state = 'done' }
      end
    end
    FLOWS.tell(base, queue, ends)
  end
end
