--- @hooks admit

--- The bucket that a person names, by its number or by a group.
local function sticky_bucketed(base, group, bucket)
  return bucket ~= '' and bucket or sticky_bucket_for(base, group)
end
