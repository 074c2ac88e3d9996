--- Find the keys of a queue that are of another type than rqueue keeps there: something else wrote them. Nothing else is
--- asked of the keys, so it works whatever they are.
--- KEYS: meta, guard
--- ARGV: how, names...
---   how: keys | words
---   names: of "keys" what follows the queue's prefix in the keys to be looked at; of "words" what a call spoke of that
---     met such a key: ids, consumers, names of logs. Then all keys are looked at that the queue itself speaks of, and
---     those that these words may be part of. At most 4000
--- REPLY: {key without the prefix, type it is, type it should be, ...}
--- ERRORS: BADARGS
--- @include "queue/key_types"
--- @include "consumer/most"

local meta = KEYS[1]
local how = ARGV[1]
local FIRST = 2

local base = string.sub(meta, 1, -5)
if #ARGV > 4000 or (how ~= 'keys' and how ~= 'words') then
  return redis.error_reply('BADARGS check_types: keys or words, and at most 4000 of them')
end

local found, seen = {}, {}
local function look(key)
  if seen[key] then return end
  seen[key] = true
  local kind, meant = key_types_wrong(base, key)
  if kind then
    found[#found + 1] = key
    found[#found + 1] = kind
    found[#found + 1] = meant
  end
end

if how == 'keys' then
  for i = FIRST, #ARGV do look(ARGV[i]) end
  return found
end

for key in pairs(KEY_TYPES) do look(key) end
for key in pairs(KEY_TYPES_OF_POLICIES) do look(key) end
for level = 0, 9 do
  look('ready:' .. level)
  look('due:' .. level)
end
local function look_at_name(name)
  for kind in pairs(KEY_TYPES_NAMED) do
    if kind ~= 'ready' and kind ~= 'due' then look(kind .. ':' .. name) end
  end
end
for i = FIRST, #ARGV do look_at_name(ARGV[i]) end
-- the consumers, as far as the lists of them can be read
for _, list in ipairs({ 'consumers', 'interested', 'notified' }) do
  if redis.call('TYPE', base .. list).ok == 'zset' then
    for _, name in ipairs(redis.call('ZRANGE', base .. list, '0', CONSUMERS_LAST)) do look_at_name(name) end
  end
end
return found
