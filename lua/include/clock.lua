--- Redis's own time in ms since the epoch, moved by the queue's test offset.
--- Numbers become text by '%d' everywhere: Lua's own way prints a double, which costs as much as a command.
local function clock(offset)
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000) + (tonumber(offset) or 0)
end
