--- @hooks places
--- @include "queue/key_types"

--- The keys of a queue as a whole: all that it may have but those that end with a job, a group or a consumer.

--- `levels`: those in use, nil: not known. `lasting`: without those that have lifetimes of their own.
local function all_keys(base, levels, lasting)
  local keys, places = {}, {}
  levels = levels or redis.call('HGET', base .. 'meta', 'levels') or ''
  --- @each places = places(levels, places)
  for _, place in ipairs(places) do keys[#keys + 1] = base .. place[1] end
  for _, types in ipairs({ KEY_TYPES, KEY_TYPES_OF_POLICIES }) do
    for key in pairs(types) do
      if not lasting or key ~= 'ended' and key ~= 'ended:old' then keys[#keys + 1] = base .. key end
    end
  end
  return keys
end

--- Whether it has to be there for other queues: it sends them jobs, or is sent some.
local function all_keys_needed(base)
  return redis.call('EXISTS', base .. 'outgoing', base .. 'sources') > 0
end
