--- @include "consumer/row"

--- What a step must know of its consumer; the check that fences it. Numbers stay text until a step counts with them.

--- The consumer if it is registered in this term, or nil and an error reply (H-08: a stale term changes nothing).
--- `row`: what `consumer_row` said, where that was asked already.
local function consumer_open(base, name, term, row)
  row = row or consumer_row(base, name)
  if not row[1] then return nil, redis.error_reply('GONE consumer is not registered, or its lease ended') end
  if row[1] ~= term then return nil, redis.error_reply('GONE the term of this consumer is over') end
  return {
    name = name,
    state = row[2],
    priority = row[3],
    jobs = row[4],
    bytes = tonumber(row[5]) or 0,
    held_bytes = tonumber(row[6]) or 0,
    account = row[6] or '0',
    worker = row[7] or '',
    browses = row[8] == 'browse',
  }
end
