--- Redis's own time in ms since the epoch; for tests moved by an offset, or stopped at "@<ms>".
--- Numbers become text by '%d' everywhere: Lua's own way prints a double, which costs as much as a command.
local function clock(offset)
  if offset and string.byte(offset) == 64 then
    local stopped = tonumber(string.sub(offset, 2))
    if stopped then return stopped end
  end
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000) + (tonumber(offset) or 0)
end
