--- What stood before the fence of shard `source` is gone, by this version of the table. Answers whether that was the last
--- one, so that the shard is to be resumed.
local function shard_lifted(base, version, source)
  local meta = base .. 'meta'
  local row = redis.call('HMGET', meta, 'shard_version', 'fences', 'fenced_pause')
  if row[1] ~= version or not row[2] then return false end
  local left = {}
  for one in string.gmatch(row[2], '%d+') do
    if one ~= source then left[#left + 1] = one end
  end
  if left[1] then
    redis.call('HSET', meta, 'fences', table.concat(left, ' '))
    return false
  end
  redis.call('HDEL', meta, 'fences', 'fenced_pause')
  return not row[3]
end
