--- @hooks awaits
--- @include "flow/ends"
--- @include "queue/open"

--- These jobs of an enqueue (`plan.deferred` = {{id=, waits=}, ...}) are stored: they wait for their parents from now on.
--- Some of those may have ended already. `plan.dependants` = {{id=, dependants=}, ...}: jobs that say who waits for them.
--- `plan.joined` = {job=how many}: open jobs that have so many parents now.
local function flows_defers(base, plan, now)
  local waits, edges, order, joins, joined = {}, {}, {}, {}, plan.joined or {}
  for _, one in ipairs(plan.dependants or {}) do
    for _, to in ipairs(one.dependants) do
      local job, place = FLOWS.name(to.job), to.place
      if place == '' then job, place = string.match(one.id, '^(.+)%.(%d+)$') end
      if job then
        local where = to.queue == '' and '' or to.mode .. '@' .. to.queue
        edges[one.id] = (edges[one.id] or '') .. place .. where .. ' ' .. job .. '\n'
      end
    end
  end
  for _, one in ipairs(plan.deferred or {}) do
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
      if not one.waits.away and (not ended or FLOWS.may_return(base, ended)) then
        edges[id] = (edges[id] or '') .. string.format('%d ', place - 1) .. one.id .. '\n'
      end
    end
    if one.waits.open then
      joined[one.id] = joined[one.id] or 0
    elseif one.waits.total == 0 then
      order[#order + 1] = one.id
      joins[one.id] = {}
    end
  end
  if waits[1] then redis.call('HSET', base .. 'deferred', unpack(waits)) end
  for job, count in pairs(joined) do
    redis.call('HSET', base .. 'deferred', job, string.format('%d', count))
    redis.call('ZADD', base .. 'unsealed', string.format('%d', now + FLOWS.LOST_MS), job)
  end
  for id, lines in pairs(edges) do
    redis.call('HSET', base .. 'edges', id, (redis.call('HGET', base .. 'edges', id) or '') .. lines)
  end
  if #order > 0 then
    local queue = queue_open(base)
    FLOWS.tell(base, queue, FLOWS.hear(base, queue, order, joins, FLOWS.STOPS))
  end
end
