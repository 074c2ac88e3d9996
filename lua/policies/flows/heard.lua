--- @hooks awaits
--- @include "flow/ends"

--- One of the ends that are said, from a place in the list on; nil where it cannot be read.
local function flows_heard_end(said, at)
  for i = at, at + 4 do
    if type(said[i]) ~= 'string' then return nil end
  end
  local one = { id = said[at + 1], tags = '', state = said[at + 2], returns = said[at + 3] == '1' }
  one.ok, one.result = one.state == 'done', said[at + 4]
  local read, cause = pcall(cjson.decode, one.ok and '' or one.result)
  one.cause = read and type(cause) == 'table' and cause or nil
  return one
end

--- Jobs of other queues have ended for which these wait: `items` = {job, ends, ...}, `ends` JSON, a list of texts: place,
--- id, state, whether it may return, what it left, of each. Returns how many of the jobs wait.
local function flows_heard(base, queue, items)
  local order, joins, heard = {}, {}, 0
  for i = 1, #items, 2 do
    local id = items[i]
    if not joins[id] then order[#order + 1], joins[id] = id, {} end
    local total = tonumber(redis.call('HGET', base .. 'deferred', id) or nil)
    local readable, said = pcall(cjson.decode, items[i + 1])
    for at = 1, total and readable and type(said) == 'table' and #said or 0, 5 do
      local one = flows_heard_end(said, at)
      local place = one and tonumber(said[at])
      if place and place >= 0 and place < total then
        table.insert(joins[id], { place = string.format('%d', place), one = one })
      end
    end
    heard = heard + (total and 1 or 0)
  end
  FLOWS.tell(base, queue, FLOWS.hear(base, queue, order, joins, FLOWS.STOPS))
  return heard
end
