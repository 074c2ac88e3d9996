--- @include "queue/constants"
--- @hooks marked

--- Positions and places of the jobs of an enqueue that are new.

--- Takes positions. Sets `step.stored` {id, value, ...}, `step.lists`, the ready ids by level, `step.scheduled`, and
--- `step.ready`, how many are ready.
local function places_lay_out(step)
  local base, plan, ids, accepted = step.base, step.plan, step.ids, step.accepted
  local position = redis.call('HINCRBY', base .. 'meta', 'seq', accepted) - accepted
  local stored = {}
  step.before, step.stored = position, stored
  if plan then
    --- @include "enqueue/batch_terms"
    step.lists, step.scheduled, step.ready = batch_terms_lay_out(plan, ids, position, step.now, stored, step.arguments,
      step.first)
    return
  end
  local arguments, first = step.arguments, step.first
  local tail, waiting = string.format(',%d;', step.now - EPOCH), accepted == step.total and ids or {}
  for i = 1, step.total do
    local id = ids[i]
    if id then
      position = position + 1
      stored[#stored + 1] = id
      stored[#stored + 1] = string.format('%d', position) .. tail .. arguments[first + 2 * i - 1]
      waiting[#stored / 2] = id
    end
  end
  step.lists, step.ready = { [4] = waiting }, accepted
end

--- Puts ready jobs into their lists, or delivers the one that has a taker. What may meet a key of another type comes
--- first, and is undone where it does: returns an error reply then. All other keys were looked at.
local function places_take(step)
  local base, taker, pushed, fault = step.base, step.taker, {}, nil
  --- @if marked
  local plan = step.plan
  if taker and plan and plan.placed then
    local value = step.stored[2]
    --- @each value = marked(base, plan.placed[1], value)
    step.stored[2] = value
  end
  --- @end
  if taker then
    fault = step.give(base, step.now, taker, step.timer, step.stored[1], step.stored[2])
  else
    for level, waiting in pairs(step.lists) do
      local length = #waiting == 0 or redis.pcall('RPUSH', base .. 'ready:' .. level, unpack(waiting))
      if type(length) == 'table' then
        fault = length
        break
      end
      if #waiting > 0 then pushed[level] = #waiting end
    end
  end
  if step.scheduled and not fault then
    --- @include "queue/sound_type"
    fault = sound_type(base, 'scheduled', 'zset')
  end
  if not fault then return nil end
  local meta = base .. 'meta'
  for level, count in pairs(pushed) do redis.call('LTRIM', base .. 'ready:' .. level, 0, -count - 1) end
  if step.before > 0 then redis.call('HINCRBY', meta, 'seq', -step.accepted) else redis.call('HDEL', meta, 'seq') end
  --- @include "queue/refused"
  return refused_reply(fault)
end
