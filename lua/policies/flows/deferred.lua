--- @hooks awaits

--- Deferred jobs are to be purged: into `ids`, until it holds `limit`.
local function flows_deferred(base, ids, limit)
  if #ids >= limit then return ids end
  for _, id in ipairs(redis.call('HRANDFIELD', base .. 'deferred', limit - #ids)) do
    flows_unblock(base, nil, { id = id, tags = '|w' })
    ids[#ids + 1] = id
  end
  return ids
end
