--- @hooks audience

--- The bucket of a group, as it stands in tags.
local function sticky_bucket_for(base, group)
  local count = tonumber(redis.call('HGET', base .. 'meta', 'sticky')) or STICKY_BUCKETS
  if not (count >= 1 and count <= STICKY_MOST) then count = STICKY_BUCKETS end
  return string.format('%d', tonumber(string.sub(redis.sha1hex(group), 1, 8), 16) % math.floor(count))
end

--- `run`: of an enqueue. What its group is called is for `groups` to say.
local function sticky_admit(queue, run)
  local group = string.match(run.more, '|g([^|~]*)')
  if group then run.tags = run.tags .. '|b' .. sticky_bucket_for(queue.base, group) end
end
