--- @include "queue/sound"

--- Some jobs of a settle end although their consumer did not end them.

--- An error reply where a key is of another type that this meets; else nil. `keys.over`: whether there are such jobs.
local function settle_over_sound(base, queue, said, keys)
  if not keys.over then return nil end
  keys.over, keys.ended = nil, 'hash'
  return sound_fault(base, queue.levels, { said.gathered.consumer })
end
