--- Try which commands of all scripts this login may run, on a key that is missing, and gone again when one has made it:
--- nothing else is touched. Where nothing may remove that key, the commands that make it are not tried, and are among the
--- answers: an operator gives them with the others.
--- KEYS: meta, guard
--- ARGV: none
--- REPLY: {command that is refused, ...}
--- ERRORS: none
local meta = KEYS[1]

local key = string.sub(meta, 1, -5) .. 'rights'
local refused = {}

-- whether a command may be run; few want a key that is there
local function allowed(...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err or string.find(reply.err, 'no such key', 1, true) then return true end
  refused[#refused + 1] = string.lower((...))
  return false
end

-- first of all: a server that is full refuses what takes memory unless the script has written before
local del, unlink = allowed('DEL', key), allowed('UNLINK', key)

-- try a command that makes the key
local function makes(...)
  if not del and not unlink then
    refused[#refused + 1] = string.lower((...))
  elseif allowed(...) then
    redis.call(del and 'DEL' or 'UNLINK', key)
  end
end

makes('APPEND', key, 'x')
for _, name in ipairs({ 'HGETALL', 'HKEYS', 'HLEN', 'LLEN', 'LPOP', 'RPOP', 'SCARD', 'SMEMBERS', 'STRLEN', 'ZCARD', 'EXISTS',
  'HVALS', 'TYPE' }) do
  allowed(name, key)
end
for _, name in ipairs({
  'HDEL', 'HEXISTS', 'HGET', 'HMGET', 'HSTRLEN', 'LINDEX', 'LPOS', 'SISMEMBER', 'SREM', 'ZMSCORE', 'ZRANK', 'ZREM', 'ZSCORE',
}) do
  allowed(name, key, '0')
end
for _, name in ipairs({ 'LPUSH', 'RPUSH', 'SADD' }) do
  makes(name, key, '0')
end
for _, name in ipairs({ 'LRANGE', 'LREM', 'LSET', 'LTRIM', 'ZCOUNT', 'ZRANGE', 'ZRANGEBYSCORE', 'ZREMRANGEBYRANK', 'ZREVRANGE' }) do
  allowed(name, key, '0', '0')
end
for _, name in ipairs({ 'ZADD', 'HSET', 'HSETNX', 'HINCRBY' }) do
  makes(name, key, '0', '0')
end
allowed('HSCAN', key, '0')
allowed('LINSERT', key, 'BEFORE', '0', '0')
makes('XADD', key, '*', '0', '0')
allowed('XLEN', key)
allowed('XDEL', key, '0-1')
allowed('XRANGE', key, '-', '+')
allowed('XREVRANGE', key, '+', '-')
allowed('TIME')
allowed('PEXPIRE', key, '1000')
allowed('RENAME', key, key)
return refused
