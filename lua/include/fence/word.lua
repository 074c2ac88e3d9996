--- What consumers hear of the table of shards: "T" is no reason to pull.

--- Up to `most` consumers have a word of it, those first whose leases last longest.
local function fence_word(base, most)
  for _, name in ipairs(redis.call('ZREVRANGE', base .. 'consumers', '0', string.format('%d', most - 1))) do
    -- a hint, no more: the next renewal finds out too
    redis.pcall('RPUSH', base .. 'wake:' .. name, 'T')
  end
end
