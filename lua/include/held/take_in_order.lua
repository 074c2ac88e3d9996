--- What a consumer holds: a list of ids in the order it acquired them. Jobs are mostly settled in that order, so most
--- settles are one comparison with the head; a list costs a tenth of a sorted set here.

--- Take `ids` off the head of what this consumer holds if they are there in this order, else change nothing. Returns
--- whether they were, and whether nothing else is held. First write: frees (README).
local function held_take_in_order(base, consumer, ids)
  local key = base .. 'held:' .. consumer
  local head = redis.call('LPOP', key, #ids + 1) or {}
  local in_order = #head >= #ids
  for i = 1, in_order and #ids or 0 do
    if head[i] ~= ids[i] then
      in_order = false
      break
    end
  end
  if in_order and #head == #ids then return true, true end
  if in_order then
    redis.call('LPUSH', key, head[#head])
  elseif #head > 0 then
    local back = {}
    for i = #head, 1, -1 do back[#back + 1] = head[i] end
    redis.call('LPUSH', key, unpack(back))
  end
  return in_order, false
end
