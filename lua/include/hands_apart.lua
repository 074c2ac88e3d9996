--- Jobs that leave a consumer's hands in another order than they came.

--- Which of `ids` are in these hands, as a table id -> true.
local function hands_find(base, consumer, ids)
  local held, mine = {}, {}
  for _, id in ipairs(redis.call('LRANGE', base .. 'held:' .. consumer, 0, -1)) do held[id] = true end
  for _, id in ipairs(ids) do mine[id] = held[id] end
  return mine
end

--- Take `ids` out of these hands; all of them are there.
local function hands_drop(base, consumer, ids)
  local key = base .. 'held:' .. consumer
  if #ids <= 4 then
    for _, id in ipairs(ids) do redis.call('LREM', key, 1, id) end
  else
    local gone, rest = {}, {}
    for _, id in ipairs(ids) do gone[id] = true end
    for _, id in ipairs(redis.call('LRANGE', key, 0, -1)) do
      if not gone[id] then rest[#rest + 1] = id end
    end
    redis.call('DEL', key)
    for i = 1, #rest, 1000 do redis.call('RPUSH', key, unpack(rest, i, math.min(i + 999, #rest))) end
  end
end
