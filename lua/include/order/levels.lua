--- The levels that a queue has ever used, high to low ("9,4"), so that a pull looks at no list that cannot hold
--- anything.

local function levels_list(levels)
  local list = {}
  for level in string.gmatch(levels or '', '%d+') do list[#list + 1] = level end
  return list
end

--- Note that these levels (a table level -> true) are in use.
local function levels_use(meta, levels, used)
  local known, grown = {}, false
  for _, level in ipairs(levels_list(levels)) do known[tonumber(level)] = true end
  for level in pairs(used) do
    if not known[level] then
      known[level] = true
      grown = true
    end
  end
  if not grown then return levels end
  local all = {}
  for level in pairs(known) do all[#all + 1] = level end
  table.sort(all, function(a, b) return a > b end)
  local text = table.concat(all, ',')
  redis.call('HSET', meta, 'levels', text)
  return text
end
