-- What Redis gives its scripts beside Lua 5.1: redis, cjson, struct. Loaded once; what runs a script
-- is returned. call(name, ...) runs a command of Redis: it returns a reply, or (text, kind), where
-- kind is 1 for a status and 2 for an error.

local call, sha1hex = ...

local rawset, xpcall, unpack, type, error, pairs, ipairs = rawset, xpcall, unpack, type, error, pairs, ipairs
local select, tonumber, tostring, setmetatable, getinfo = select, tonumber, tostring, setmetatable, debug.getinfo
local loadstring, newproxy = loadstring, newproxy
local format, sub, byte, char, find, gsub, concat = string.format, string.sub, string.byte, string.char, string.find,
  string.gsub, table.concat
local globals = _G

-- redis -------------------------------------------------------------------------------------------

redis = { LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3 }

local function answer(reply, kind)
  if kind == 1 then return { ok = reply } end
  if kind == 2 then return nil, { err = reply } end
  return reply
end

function redis.pcall(...)
  local reply, refused = answer(call(...))
  return refused or reply
end

function redis.call(...)
  local reply, refused = answer(call(...))
  if refused then error(refused, 0) end
  return reply
end

function redis.error_reply(text) return { err = (gsub(text, '^%-', '')) } end
function redis.status_reply(text) return { ok = text } end
function redis.sha1hex(text) return sha1hex(tostring(text)) end
function redis.log() end

-- bit ---------------------------------------------------------------------------------------------

bit = {}

function bit.bor(a, b)
  local found, place = 0, 1
  while a > 0 or b > 0 do
    local low, other = a % 2, b % 2
    if low + other > 0 then found = found + place end
    a, b, place = (a - low) / 2, (b - other) / 2, 2 * place
  end
  return found
end

-- struct ------------------------------------------------------------------------------------------

struct = {}

local function known(layout)
  if layout ~= '>I4' then error("rqueue's server in memory has no struct format " .. layout, 0) end
end

function struct.pack(layout, number)
  known(layout)
  return char(math.floor(number / 16777216) % 256, math.floor(number / 65536) % 256, math.floor(number / 256) % 256,
    number % 256)
end

function struct.unpack(layout, text, at)
  known(layout)
  at = at or 1
  if #text - at + 1 < 4 then error("bad argument #2 to 'unpack' (data string too short)", 0) end
  local a, b, c, d = byte(text, at, at + 3)
  return ((a * 256 + b) * 256 + c) * 256 + d, at + 4
end

-- cjson -------------------------------------------------------------------------------------------

cjson = { null = newproxy() }

local DEEPEST = 1000
local SHORT = { ['"'] = '\\"', ['\\'] = '\\\\', ['/'] = '\\/', ['\b'] = '\\b', ['\f'] = '\\f', ['\n'] = '\\n',
  ['\r'] = '\\r', ['\t'] = '\\t' }

local function escaped(text)
  return '"' .. gsub(text, '[%z\1-\31"\\/\127]', function(one)
    return SHORT[one] or format('\\u%04x', byte(one))
  end) .. '"'
end

-- how long a table is as an array; nil where it is none
local function length_of(value)
  local most, count = 0, 0
  for key in pairs(value) do
    if type(key) ~= 'number' or key < 1 or key ~= math.floor(key) then return nil end
    if key > most then most = key end
    count = count + 1
  end
  if most > count * 2 and most > 10 then error('Cannot serialise table: excessively sparse array', 0) end
  return most
end

local encode

local function encode_table(value, out, depth)
  if depth > DEEPEST then error(format('Cannot serialise, excessive depth (%d)', depth), 0) end
  local length = length_of(value)
  if length and length > 0 then
    out[#out + 1] = '['
    for i = 1, length do
      if i > 1 then out[#out + 1] = ',' end
      encode(value[i], out, depth)
    end
    out[#out + 1] = ']'
    return
  end
  out[#out + 1] = '{'
  local first = true
  for key, item in pairs(value) do
    if not first then out[#out + 1] = ',' end
    first = false
    if type(key) == 'number' then
      out[#out + 1] = format('"%.14g":', key)
    elseif type(key) == 'string' then
      out[#out + 1] = escaped(key) .. ':'
    else
      error('Cannot serialise table: table key must be a number or string', 0)
    end
    encode(item, out, depth)
  end
  out[#out + 1] = '}'
end

function encode(value, out, depth)
  local kind = type(value)
  if kind == 'string' then
    out[#out + 1] = escaped(value)
  elseif kind == 'number' then
    if value ~= value or value == math.huge or value == -math.huge then
      error('Cannot serialise number: must not be NaN or Inf', 0)
    end
    out[#out + 1] = format('%.14g', value)
  elseif kind == 'boolean' then
    out[#out + 1] = value and 'true' or 'false'
  elseif kind == 'table' then
    encode_table(value, out, depth + 1)
  elseif value == nil or value == cjson.null then
    out[#out + 1] = 'null'
  else
    error('Cannot serialise ' .. kind .. ': type not supported', 0)
  end
end

function cjson.encode(value)
  local out = {}
  encode(value, out, 0)
  return concat(out)
end

local function utf8(code)
  if code < 128 then return char(code) end
  if code < 2048 then return char(192 + math.floor(code / 64), 128 + code % 64) end
  if code < 65536 then
    return char(224 + math.floor(code / 4096), 128 + math.floor(code / 64) % 64, 128 + code % 64)
  end
  return char(240 + math.floor(code / 262144), 128 + math.floor(code / 4096) % 64, 128 + math.floor(code / 64) % 64,
    128 + code % 64)
end

local PLAIN = { b = '\b', f = '\f', n = '\n', r = '\r', t = '\t', ['"'] = '"', ['\\'] = '\\', ['/'] = '/' }

local function misread(what, at) error(format('Expected %s at character %d', what, at), 0) end

-- one character behind a backslash, and where the text goes on
local function unescaped(text, at)
  local one = sub(text, at, at)
  if one ~= 'u' then
    if not PLAIN[one] then misread('value but found invalid escape code', at - 1) end
    return PLAIN[one], at + 1
  end
  local code = tonumber(string.match(text, '^%x%x%x%x', at + 1) or '', 16)
  if not code then misread('value but found invalid unicode escape code', at - 1) end
  if code < 55296 or code > 57343 then return utf8(code), at + 5 end
  local low = tonumber(string.match(text, '^\\u(%x%x%x%x)', at + 5) or '', 16)
  if code > 56319 or not low or low < 56320 or low > 57343 then
    misread('value but found invalid unicode escape code', at - 1)
  end
  return utf8((code - 55296) * 1024 + low - 56320 + 65536), at + 11
end

local function read_string(text, at)
  local stop = find(text, '[%z"\\]', at)
  if stop and byte(text, stop) == 34 then return sub(text, at, stop - 1), stop + 1 end
  local out = {}
  while true do
    if not stop or byte(text, stop) == 0 then misread('value but found unexpected end of string', #text + 1) end
    out[#out + 1] = sub(text, at, stop - 1)
    if byte(text, stop) == 34 then return concat(out), stop + 1 end
    out[#out + 1], at = unescaped(text, stop + 1)
    stop = find(text, '[%z"\\]', at)
  end
end

local function behind_space(text, at) return find(text, '[^ \t\r\n]', at) or #text + 1 end

local function read_number(text, at)
  local _, stop = find(text, '^%-?0[xX]%x+', at)
  if not stop then _, stop = find(text, '^%-?%d+%.?%d*', at) end
  if not stop then return nil end
  local _, behind = find(text, '^[eE][+-]?%d+', stop + 1)
  return tonumber(sub(text, at, behind or stop)), (behind or stop) + 1
end

local read_value

local function read_array(text, at, depth)
  local found, count = {}, 0
  at = behind_space(text, at)
  if sub(text, at, at) == ']' then return found, at + 1 end
  while true do
    count = count + 1
    found[count], at = read_value(text, at, depth)
    at = behind_space(text, at)
    local mark = sub(text, at, at)
    if mark == ']' then return found, at + 1 end
    if mark ~= ',' then misread('comma or array end', at) end
    at = at + 1
  end
end

local function read_object(text, at, depth)
  local found = {}
  at = behind_space(text, at)
  if sub(text, at, at) == '}' then return found, at + 1 end
  while true do
    at = behind_space(text, at)
    if sub(text, at, at) ~= '"' then misread('object key string', at) end
    local key
    key, at = read_string(text, at + 1)
    at = behind_space(text, at)
    if sub(text, at, at) ~= ':' then misread('colon', at) end
    found[key], at = read_value(text, at + 1, depth)
    at = behind_space(text, at)
    local mark = sub(text, at, at)
    if mark == '}' then return found, at + 1 end
    if mark ~= ',' then misread('comma or object end', at) end
    at = at + 1
  end
end

function read_value(text, at, depth)
  at = behind_space(text, at)
  local mark = sub(text, at, at)
  if mark == '"' then return read_string(text, at + 1) end
  if mark == '[' or mark == '{' then
    if depth >= DEEPEST then
      error(format('Found too many nested data structures (%d)', depth + 1), 0)
    end
    return (mark == '[' and read_array or read_object)(text, at + 1, depth + 1)
  end
  if sub(text, at, at + 3) == 'true' then return true, at + 4 end
  if sub(text, at, at + 4) == 'false' then return false, at + 5 end
  if sub(text, at, at + 3) == 'null' then return cjson.null, at + 4 end
  local number, behind = read_number(text, at)
  if not number then misread('value but found invalid token', at) end
  return number, behind
end

function cjson.decode(text)
  local value, at = read_value(tostring(text), 1, 0)
  at = behind_space(text, at)
  if at <= #text then misread('the end but found invalid token', at) end
  return value
end

-- running -----------------------------------------------------------------------------------------

for _, name in ipairs({ 'python', 'require', 'module', 'package', 'io', 'dofile', 'loadfile', 'print', 'newproxy', 'debug',
  'getfenv', 'setfenv' }) do
  rawset(globals, name, nil)
end
os = { clock = os.clock }
-- random numbers are the same in each run, as in each script of Redis
math.randomseed(0)
rawset(globals, 'KEYS', {})
rawset(globals, 'ARGV', {})

setmetatable(globals, {
  __newindex = function(_, name)
    error('Script attempted to create global variable ' .. "'" .. tostring(name) .. "'", 2)
  end,
  __index = function(_, name)
    if name == 'debug' then return nil end -- lupa looks for it
    error('Script attempted to access nonexistent global variable ' .. "'" .. tostring(name) .. "'", 2)
  end,
})

local function compile(source) return loadstring(source, '@user_script') end

local function line_of()
  for level = 3, 60 do
    local there = getinfo(level, 'Sl')
    if not there then return 0 end
    if there.source == '@user_script' then return there.currentline end
  end
  return 0
end

local function caught(said)
  if type(said) == 'table' and said.err then return { err = said.err, line = line_of() } end
  return { err = 'ERR ' .. tostring(said), line = line_of() }
end

local function run(script, keys, args)
  rawset(globals, 'KEYS', keys)
  rawset(globals, 'ARGV', args)
  local well, reply = xpcall(script, caught)
  if not well then return 2, reply.err, reply.line end
  if type(reply) ~= 'table' then return 0, reply end
  if reply.err then return 3, reply.err end
  if reply.ok then return 1, reply.ok end
  return 0, reply
end

return compile, run
