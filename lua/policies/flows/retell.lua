--- @hooks awaits
--- @include "flow/ends"
--- @include "result/read"

--- A deferred job hears of those among some of its parents, from the place `first` on, that are not there: of each what
--- its record says, or that it is lost. Returns of how many.
local function flows_retell(base, queue, id, first)
  local total = tonumber(redis.call('HGET', base .. 'deferred', id) or nil)
  local its = total and FLOWS.tag(redis.call('HGET', base .. 'jobs', id) or '')
  if its and its.open then
    -- where it is noted until when its producer may be silent, that stays
    redis.call('ZADD', base .. 'unsealed', 'NX', string.format('%d', queue.now + FLOWS.LOST_MS), id)
  end
  if not its or first >= total then return 0 end
  local places, parents, some = {}, {}, {}
  for place = first, math.min(total, first + FLOWS.RESULTS) - 1 do
    places[#places + 1] = string.format('%d', place)
    parents[#places] = its.ids and its.ids[place + 1] or id .. '.' .. places[#places]
  end
  local known = FLOWS.known(base, id, its, places)
  local values = redis.call('HMGET', base .. 'jobs', unpack(parents))
  for i, parent in ipairs(parents) do
    local value = values[i]
    local lives = value and string.byte(value) ~= 33 and not redis.call('ZSCORE', base .. 'dead', parent)
    local record = not known[i] and not lives and result_read(base, parent)
    -- of what is in another queue nothing is known here
    if record or not known[i] and not lives and not its.away then
      local letter, result = string.match(record or '', '^(%a)%d+:(.*)$')
      local one = FLOWS.ended(parent, '', record, letter == 'D' and result)
      if not record then one.state = 'lost' end
      some[#some + 1] = { place = places[i], one = one }
    end
  end
  FLOWS.tell(base, queue, FLOWS.hear(base, queue, { id }, { [id] = some }, FLOWS.STOPS))
  return #some
end
