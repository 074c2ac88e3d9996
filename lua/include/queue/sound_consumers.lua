--- @include "queue/sound_type"

--- Whether the keys by which consumers are notified are of their types.

--- An error reply where something else has written a key of one of these consumers; else nil.
local function sound_consumers(base, names)
  local seen = {}
  for _, name in ipairs(names) do
    if not seen[name] then
      seen[name] = true
      local fault = sound_type(base, 'consumer:' .. name, 'hash') or sound_type(base, 'held:' .. name, 'list')
        or sound_type(base, 'wake:' .. name, 'list')
      if fault then return fault end
    end
  end
end
