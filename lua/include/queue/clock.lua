--- Redis's own time in ms since the epoch; for tests moved by an offset, or stopped at "@<ms>".
--- Numbers become text by '%d' everywhere: Lua's own way prints a double, which costs as much as a command.
local function clock(offset)
  if offset and string.byte(offset) == 64 then
    local stopped = tonumber(string.sub(offset, 2))
    if stopped then return stopped end
  end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + time[2] / 1000
  now = now - now % 1
  return offset and now + (tonumber(offset) or 0) or now
end
