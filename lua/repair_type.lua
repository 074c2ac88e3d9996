--- Move a key away that is of another type than rqueue keeps there: what is in it is kept as "foreign:<key>" of this
--- queue, and the key is as if it had never been. What it held of the queue before is lost with it: look for jobs that are
--- in no place next.
--- KEYS: meta, guard
--- ARGV: key
---   key: what follows the queue's prefix
--- REPLY: {name that it has now, without the prefix; "" where it was right}
--- ERRORS: BADARGS
--- @include "queue/key_types"

local meta = KEYS[1]
local key = ARGV[1]

local base = string.sub(meta, 1, -5)
if not key_types_wrong(base, key) then return { '' } end

-- one that was moved away earlier stays
local aside = 'foreign:' .. key
local number = 1
while redis.call('EXISTS', base .. aside) == 1 do
  number = number + 1
  if number > 100 then
    return redis.error_reply('BADARGS repair_type: 100 foreign keys were moved away from here: delete some')
  end
  aside = string.format('foreign:%s:%d', key, number)
end
redis.call('RENAME', base .. key, base .. aside)
return { aside }
