--- Lines that the code of a job has logged: `log:<id>`, a list of
--- "<number>,<bytes>,<delivery>,<token>.<serial>,<ms>,<level>;<text>". Numbers count from 1 through the job's life,
--- bytes all that were logged up to this line. The token is that of the attempt, which counts its lines by serials.

local LINES_MOST = 1000
local LINES_BYTES = 100000

--- How long they outlive the last of them, ms: a day.
local LINES_KEPT_MS = '86400000'

--- Number, bytes, token and serial of a line; zeros where there is none.
local function lines_head(line)
  local number, bytes, token, serial = string.match(line or '', '^(%d+),(%d+),%d+,(%w*)%.(%d+),')
  return tonumber(number) or 0, tonumber(bytes) or 0, token, tonumber(serial) or 0
end

--- Add lines of an attempt, of which the first has the serial `first`: those that came before, and whose reply was
--- lost, are there. The oldest go, where there are too many.
local function lines_append(base, id, delivery, token, first, new)
  local key, added = base .. 'log:' .. id, {}
  local number, bytes, its, serial = lines_head(redis.call('LINDEX', key, '-1'))
  for i = its == token and math.max(1, serial - first + 2) or 1, #new do
    number, bytes = number + 1, bytes + #new[i]
    added[#added + 1] = string.format('%d,%d,%d,%s.%d,', number, bytes, delivery, token, first + i - 1) .. new[i]
  end
  if #added == 0 then return end
  redis.call('RPUSH', key, unpack(added))
  redis.call('LTRIM', key, -LINES_MOST, '-1')
  local low, high = 0, redis.call('LLEN', key) - 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    local _, before = lines_head(redis.call('LINDEX', key, middle))
    if before > bytes - LINES_BYTES then high = middle else low = middle + 1 end
  end
  if low > 0 then redis.call('LTRIM', key, low, '-1') end
  redis.call('PEXPIRE', key, LINES_KEPT_MS)
end

--- At most 200 lines behind the one of this number.
local function lines_after(base, id, number)
  local key = base .. 'log:' .. id
  local first = redis.call('LINDEX', key, '0')
  if not first then return {} end
  local start = math.max(0, number - lines_head(first) + 1)
  return redis.call('LRANGE', key, start, start + 199)
end
