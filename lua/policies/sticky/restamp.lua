--- @hooks audience

--- The queue's kind changes, and it has no jobs.
local function sticky_restamp(base)
  redis.call('DEL', base .. 'owners')
  redis.call('HDEL', base .. 'meta', 'sticky', 'rebalance')
end
