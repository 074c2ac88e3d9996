--- What a consumer holds: a list of ids in the order it acquired them. Jobs are mostly settled in that order, so most
--- settles are one comparison with the head; a list costs a tenth of a sorted set here.

--- Which of `ids` are in these hands, as a table id -> true; whether they are its head, in order; and whether nothing
--- else is there.
local function hands_find(base, consumer, ids)
  local key = base .. 'held:' .. consumer
  local head = redis.call('LRANGE', key, '0', #ids)
  local mine, in_order, alone = {}, #head >= #ids, #head <= #ids
  for i = 1, #head do
    mine[head[i]] = true
    if head[i] ~= ids[i] and i <= #ids then in_order = false end
  end
  if not in_order then
    for _, id in ipairs(redis.call('LRANGE', key, #head, '-1')) do mine[id] = true end
  end
  return mine, in_order, alone
end

--- Take `ids` out of these hands; all of them are there.
local function hands_drop(base, consumer, ids, in_order)
  local key = base .. 'held:' .. consumer
  if in_order then
    redis.call('LTRIM', key, #ids, '-1')
  elseif #ids <= 4 then
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

--- Bytes of the values in these hands: counted anew where the running account cannot be trusted.
local function hands_bytes(base, consumer)
  local ids, total = redis.call('LRANGE', base .. 'held:' .. consumer, 0, -1), 0
  for i = 1, #ids, 1000 do
    local values = redis.call('HMGET', base .. 'jobs', unpack(ids, i, math.min(i + 999, #ids)))
    for _, value in ipairs(values) do
      if value then total = total + #value end
    end
  end
  return total
end

--- Which consumer holds a job: a look into each one's hands (a queue has at most some thousands of consumers).
local function hands_holder(base, id)
  for _, consumer in ipairs(redis.call('ZRANGE', base .. 'consumers', 0, 4095)) do
    if redis.call('LPOS', base .. 'held:' .. consumer, id) then return consumer end
  end
  return false
end
