--- `first` = {_, ms}: what becomes due first, as ZRANGE answers of it; the next tokens, where they come before.
local function limits_timed(base, first)
  local next_ = redis.pcall('ZRANGE', base .. 'tokens_due', '0', '0', 'WITHSCORES')
  if next_[2] and (not first[2] or tonumber(next_[2]) < tonumber(first[2])) then first[2] = next_[2] end
end
