--- @include "queue/sound_type"

--- The keys of producers that wait for room: `producers`, by their turn; `wishes`: producer -> "<jobs>,<until>,<bytes>",
--- for how much it waits, or has a grant, and when it is to have said again that it waits; `grants`, by their deadlines.
--- `room:<producer>`: one word, once it is to look again. Fields
--- `granted`, `granted_bytes` of `meta`: of all grants.

--- An error reply where one of them is of another type, else nil.
local function room_sound(base)
  return sound_type(base, 'producers', 'zset') or sound_type(base, 'grants', 'zset') or sound_type(base, 'wishes', 'hash')
end
