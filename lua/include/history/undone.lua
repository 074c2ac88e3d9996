--- An entry of the history is taken back. The stream itself remembers that its id was given, and gives none before it.

--- `id`: of the entry that was added last.
local function history_undone(base, id)
  local stream = base .. 'history'
  redis.call('XDEL', stream, id)
  if redis.call('XLEN', stream) == 0 and redis.call('HEXISTS', base .. 'meta', 'history_trimmed') == 0 then
    redis.call('DEL', stream)
  end
end
