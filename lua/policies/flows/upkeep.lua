--- @hooks awaits
--- @include "flow/ends"

--- Open jobs whose producer has said nothing for so long that it is lost: into `stopped`, a few in each call.
local function flows_upkeep_lost(base, queue, stopped)
  local late = redis.call('ZRANGEBYSCORE', base .. 'unsealed', '-inf', string.format('%d', queue.now), 'LIMIT', '0', '64')
  if not late[1] then return false end
  local values, counts = redis.call('HMGET', base .. 'jobs', unpack(late)), redis.call('HMGET', base .. 'deferred', unpack(late))
  for i, id in ipairs(late) do
    local its = counts[i] and FLOWS.tag(values[i])
    if its and its.open then
      local said = string.format('its producer went away, with %d members enqueued', tonumber(counts[i]) or 0)
      stopped[#stopped + 1] = { id = id, why = { kind = 'parent', type = 'ProducerLost', at = queue.now, message = said } }
    end
  end
  redis.call('ZREM', base .. 'unsealed', unpack(late))
  return #late == 64
end

--- Jobs that are to end because of their parents, or because their producer is lost, do so, a few in each call. True
--- where there are more.
local function flows_upkeep(base, queue)
  local stopped = {}
  local more = flows_upkeep_lost(base, queue, stopped)
  local noted = redis.call('HRANDFIELD', base .. 'stops', '64', 'WITHVALUES')
  for i = 1, #noted, 2 do
    local read, why = pcall(cjson.decode, noted[i + 1])
    stopped[#stopped + 1] = { id = noted[i], why = read and type(why) == 'table' and why or { kind = 'parent' } }
  end
  if not stopped[1] then return more end
  FLOWS.tell(base, queue, FLOWS.stop(base, queue, stopped))
  return more or #noted == 128
end
