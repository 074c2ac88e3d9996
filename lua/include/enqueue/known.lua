--- Which jobs of an enqueue are new.

--- Sets `step.ids`, false for a job whose id is known or comes twice, `step.refused`, the places of these from 0, and
--- `step.accepted`, how many are new.
local function known_drop(step)
  local base, total, arguments, first = step.base, step.total, step.arguments, step.first
  local ids, refused, accepted = {}, {}, total
  for i = 1, total do ids[i] = arguments[first + 2 * (i - 1)] end
  local live = redis.call('HMGET', base .. 'jobs', unpack(ids))
  local ended = redis.call('HMGET', base .. 'ended', unpack(ids))
  local older = redis.call('HMGET', base .. 'ended:old', unpack(ids))
  local seen = total > 1 and {} or nil
  for i = 1, total do
    local id = ids[i]
    if live[i] or ended[i] or older[i] or seen and seen[id] then
      refused[#refused + 1] = i - 1
      ids[i] = false
      accepted = accepted - 1
    elseif seen then
      seen[id] = true
    end
  end
  step.ids, step.refused, step.accepted = ids, refused, accepted
end
