--- @hooks awaits

--- Jobs that are to end because of their parents do so, a few in each call. True where there are more.
local function flows_upkeep(base, queue)
  local noted, stopped = redis.call('HRANDFIELD', base .. 'stops', '64', 'WITHVALUES'), {}
  if #noted == 0 then return false end
  for i = 1, #noted, 2 do
    local read, why = pcall(cjson.decode, noted[i + 1])
    stopped[#stopped + 1] = { id = noted[i], why = read and type(why) == 'table' and why or { kind = 'parent' } }
  end
  FLOWS.tell(base, queue, FLOWS.stop(base, queue, stopped))
  return #noted == 128
end
