--- @hooks awaits
--- @include "queue/open"

--- These jobs of an enqueue ({id=, waits=}) are stored: they wait for their parents from now on. Some of those may have
--- ended already.
local function flows_defers(base, plan)
  local waits, edges, order, joins = {}, {}, {}, {}
  for _, one in ipairs(plan.deferred) do
    waits[#waits + 1] = one.id
    waits[#waits + 1] = string.format('%d', one.waits.total)
    for place, id in ipairs(one.waits.ids or {}) do
      local ended = plan.ends[id]
      if ended then
        if not joins[one.id] then
          joins[one.id] = {}
          order[#order + 1] = one.id
        end
        table.insert(joins[one.id], { place = string.format('%d', place - 1), one = ended })
      end
      if not ended or ended.state == 'dead' then
        edges[id] = (edges[id] or '') .. string.format('%d ', place - 1) .. one.id .. '\n'
      end
    end
    if one.waits.total == 0 then
      order[#order + 1] = one.id
      joins[one.id] = {}
    end
  end
  redis.call('HSET', base .. 'deferred', unpack(waits))
  for id, lines in pairs(edges) do
    redis.call('HSET', base .. 'edges', id, (redis.call('HGET', base .. 'edges', id) or '') .. lines)
  end
  if #order > 0 then
    local queue = queue_open(base)
    FLOWS.tell(base, queue, FLOWS.hear(base, queue, order, joins, FLOWS.STOPS))
  end
end
