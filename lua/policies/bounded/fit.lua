--- @include "room/look"
--- @include "room/wish"
--- @include "room/sound"

--- An error reply where these jobs do not fit. `plan` = {jobs=, gone=, runs=}: how many they are, how many leave for
--- them, and the runs of the enqueue, which end in ">" and a producer that was notified. `plan.used`: it has a grant,
--- which is over with this step. Runs that end in ">!" are let in: they follow jobs that are settled with them.
local function bounded_fit(base, plan)
  if string.find(plan.runs, '>!', -2, true) then return nil end
  local look, producer, mine = room_look(base), string.match(plan.runs, '>(%w+)$'), 0
  if producer then
    local fault = room_sound(base)
    if fault then return fault end
    if redis.call('ZSCORE', base .. 'grants', producer) then
      mine, plan.used = room_wish(base, producer), producer
    end
  end
  if look.most == math.huge then return nil end
  -- what was promised holds, also where jobs have come back to the queue meanwhile
  if plan.jobs <= mine then return nil end
  local free = look.most - look.count - look.granted + mine + (plan.gone or 0)
  if plan.jobs <= free and (mine > 0 or not look.blocks or redis.call('ZCARD', base .. 'producers') == 0) then
    return nil
  end
  plan.used = nil
  return redis.error_reply('FULL ' .. string.format('%d %d %d %d %d', look.blocks and 1 or 0, look.most, look.count,
    look.granted - mine, plan.jobs))
end
