--- Whether the limits of a bounded queue count jobs that consumers hold, too.
local function room_held_counts(base)
  return redis.call('HGET', base .. 'meta', 'count_held') == '1'
end
