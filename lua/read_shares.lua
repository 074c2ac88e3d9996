--- Show the shares of a queue that have ready jobs, and what weights they have.
--- KEYS: meta, guard
--- ARGV: most
---   most: so many of those that have ready jobs are shown, about; at most 10000
--- REPLY: {now, {share, weight, ...}, {strand, ready jobs, ...}, how many strands there are}; strands: "<level>.<share>", of those
---   with ready jobs; shares are escaped, "*" has what is said of all others
--- ERRORS: BADARGS | SCHEMA
--- @include "queue/open"
--- @hooks apportion

local meta = KEYS[1]
local most = ARGV[1]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
local number = tonumber(most)
if not number or number < 1 or number > 10000 then return redis.error_reply('BADARGS read_shares: 1 to 10000 shares') end

local strands, cursor = {}, '0'
repeat
  local page = redis.call('HSCAN', base .. 'strands', cursor, 'COUNT', most)
  cursor = page[1]
  for i = 1, #page[2], 2 do
    strands[#strands + 1] = page[2][i]
    strands[#strands + 1] = 1 + redis.call('ZCARD', base .. 'group:' .. page[2][i])
  end
until cursor == '0' or #strands >= 2 * number
return { queue.now, redis.call('HGETALL', base .. 'weights'), strands, redis.call('HLEN', base .. 'strands') }
