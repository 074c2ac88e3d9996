--- A consumer stays where it was.

--- `done`: what the commands of its move answered: `turn` = the turn that it took, `added` to the list `to`, `unread` =
--- how many wake-ups were taken away.
local function state_undone(base, name, to, done)
  if done.added == 1 then redis.call((to == 'interested' or to == 'notified') and 'ZREM' or 'SREM', base .. to, name) end
  if type(done.unread) == 'number' then
    for _ = 1, done.unread do redis.call('RPUSH', base .. 'wake:' .. name, 'w') end
  end
  if done.turn == 1 then
    redis.call('HDEL', base .. 'meta', 'turn')
  elseif done.turn then
    redis.call('HINCRBY', base .. 'meta', 'turn', -1)
  end
end
