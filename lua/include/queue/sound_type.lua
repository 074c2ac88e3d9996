--- Whether a key is of the type that rqueue keeps there.

local SOUND_REMEDY = '. Nothing was changed. Something that is not rqueue wrote it: move it away (RENAME, HDEL), and let '
  .. 'rqueue doctor look at what is left'

--- An error reply where something else has written the key; else nil.
local function sound_type(base, key, meant)
  local kind = redis.call('TYPE', base .. key).ok
  if kind == 'none' or kind == meant then return nil end
  return redis.error_reply('DAMAGED ' .. string.format('the key %s%s is a %s, where rqueue keeps a %s', base, key, kind,
    meant) .. SOUND_REMEDY)
end
