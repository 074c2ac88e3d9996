--- Try which commands of all scripts this login may run, on a key that is gone again when it ends: nothing else is
--- touched.
--- KEYS: meta, guard
--- ARGV: none
--- REPLY: {command that is refused, ...}
--- ERRORS: none
local meta = KEYS[1]

local key = string.sub(meta, 1, -5) .. 'rights'
local refused = {}

-- whether a command may be run; of the wrong type for nearly all of them, the key stays what it is
local function allowed(...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err or string.find(reply.err, 'WRONGTYPE', 1, true) then return true end
  refused[#refused + 1] = string.lower((...))
  return false
end

if not allowed('DEL', key) or not allowed('APPEND', key, 'x') then return refused end

for _, name in ipairs({ 'HGETALL', 'HKEYS', 'HLEN', 'LLEN', 'LPOP', 'RPOP', 'SCARD', 'SMEMBERS', 'STRLEN', 'ZCARD', 'EXISTS',
  'HVALS', 'TYPE' }) do
  allowed(name, key)
end
for _, name in ipairs({
  'HDEL', 'HEXISTS', 'HGET', 'HMGET', 'HSTRLEN', 'LINDEX', 'LPOS', 'LPUSH', 'RPUSH', 'SADD', 'SISMEMBER', 'SREM', 'ZMSCORE',
  'ZRANK', 'ZREM', 'ZSCORE',
}) do
  allowed(name, key, '0')
end
for _, name in ipairs({
  'LRANGE', 'LREM', 'LSET', 'LTRIM', 'ZADD', 'ZCOUNT', 'ZRANGE', 'ZRANGEBYSCORE', 'ZREMRANGEBYRANK', 'ZREVRANGE', 'HSET',
  'HSETNX', 'HINCRBY',
}) do
  allowed(name, key, '0', '0')
end
allowed('HSCAN', key, '0')
allowed('LINSERT', key, 'BEFORE', '0', '0')
allowed('XADD', key, '*', '0', '0')
allowed('XLEN', key)
allowed('XDEL', key, '0-1')
allowed('XRANGE', key, '-', '+')
allowed('XREVRANGE', key, '+', '-')
allowed('TIME')
allowed('PEXPIRE', key, '1000')
allowed('RENAME', key, key)
allowed('UNLINK', key)
redis.call('DEL', key)
return refused
