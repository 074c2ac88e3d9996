--- @include "order/standing"
--- @include "finish/displaced"
--- @hooks displace

--- These jobs ({id=, level=, position=, due=, tags=, ...}) are to be ready, in this order: new, due, or back from a
--- consumer. Those with a key go to their places, and the older ones of their keys end; the others are returned.
--- `queue.kept_back` counts those that another one of this call displaces. `queue.displaced`: what an enqueue asked
--- before its first write, and has ended.
local function last_value_shelf(base, queue, jobs)
  local mine, rest = {}, {}
  for _, job in ipairs(jobs) do
    if last_value_key(job) then mine[#mine + 1] = job else rest[#rest + 1] = job end
  end
  if #mine == 0 then return jobs end
  local plan = queue.displaced
  if not plan then
    plan = { victims = {}, gone = {} }
    last_value_displace(base, mine, plan)
    displaced_end(base, queue, plan)
  end
  local open = {}
  for _, job in ipairs(mine) do
    if plan.gone[job.id] then
      queue.kept_back = (queue.kept_back or 0) + 1
    else
      open[#open + 1], open[#open + 2] = standing_of(job)
    end
  end
  redis.call('HSET', base .. 'latest', unpack(plan.latest))
  if #open > 0 then redis.call('ZADD', base .. 'heads', unpack(open)) end
  return rest
end
