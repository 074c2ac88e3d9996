--- Answer questions of Redis's own commands for one moment. A client that asks several has them in a transaction; one
--- that has reached its maxmemory refuses to queue any command, and this is asked instead.
--- KEYS: meta, guard
--- ARGV: commands...
---   commands: of each how many words follow its name, its name, these words
--- REPLY: {reply of each command, as a script sees it}
--- ERRORS: BADARGS

local meta = KEYS[1]
local FIRST = 1

--- Commands that change nothing.
local READS = {}
for _, name in ipairs({
  'BITCOUNT', 'BITFIELD_RO', 'EXISTS', 'GET', 'GETRANGE', 'HGET', 'HGETALL', 'HKEYS', 'HLEN', 'HMGET', 'HSCAN', 'HSTRLEN',
  'HVALS', 'LINDEX', 'LLEN', 'LRANGE', 'SCARD', 'SISMEMBER', 'SMEMBERS', 'STRLEN', 'TIME', 'TYPE', 'XLEN', 'XRANGE',
  'XREVRANGE', 'ZCARD', 'ZCOUNT', 'ZMSCORE', 'ZRANGE', 'ZRANK', 'ZSCAN', 'ZSCORE',
}) do
  READS[name] = true
end
local WORDS_MAX = 7000
-- what the names of all queues' keys begin with
local root = string.match(meta, '^[^{]*')

local asked, at = {}, FIRST
while at <= #ARGV do
  local count, key = tonumber(ARGV[at]), ARGV[at + 2]
  if not count or count < 0 or count > WORDS_MAX or at + 1 + count > #ARGV or not READS[ARGV[at + 1]]
    or count > 0 and string.sub(key, 1, #root) ~= root then
    return redis.error_reply('BADARGS read_keys: no command that reads keys of a queue, or too many words')
  end
  asked[#asked + 1] = { at + 1, at + 1 + count }
  at = at + 2 + count
end
local replies = {}
for i, words in ipairs(asked) do replies[i] = redis.call(unpack(ARGV, words[1], words[2])) end
return replies
