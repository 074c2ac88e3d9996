--- A pull that met a key of another type is undone.

--- `taken`: what `dequeue_heads` noted; `held` in it: so many of them are in the consumer's list.
local function undone_pull(base, consumer, taken)
  --- @each undeal(base, taken)
  if taken.held then redis.call('LTRIM', base .. 'held:' .. consumer.name, 0, -taken.held - 1) end
  if taken.back then redis.call('LTRIM', taken[2 * taken.rounds - 1], taken.back, '-1') end
  for round = taken.rounds, 1, -1 do
    local ids, back = taken[2 * round], {}
    for i = #ids, 1, -1 do back[#back + 1] = ids[i] end
    if #back > 0 then redis.call('LPUSH', taken[2 * round - 1], unpack(back)) end
  end
  --- @if heads
  for owner, key in ipairs(taken.sets or {}) do
    local back = {}
    for i = 1, taken.passed do
      if not taken.owners or taken.owners[i] == owner then
        back[#back + 1] = taken.members[2 * i]
        back[#back + 1] = taken.members[2 * i - 1]
      end
    end
    if #back > 0 then redis.call('ZADD', key, unpack(back)) end
  end
  --- @end
  if taken.unmarked then
    redis.call('HSET', base .. 'jobs', unpack(taken.marks, 1, taken.unmarked))
    redis.call('HINCRBY', base .. 'meta', 'marked', taken.unmarked / 2)
  end
end
