--- @hooks audience

--- The consumer that owns a bucket; nil: none does.
local function sticky_owner(base, bucket)
  return redis.call('HGET', base .. 'owners', bucket) or nil
end
