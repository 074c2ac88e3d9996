--- @include "room/look"
--- @include "room/wish"
--- @include "room/sound"

--- An error reply where these jobs do not fit. `plan` = {jobs=, bytes=, gone=, victims=, runs=}: how many they are, how
--- many leave for them and which, and the runs of the enqueue, which end in ">" and a producer that was notified. `plan.used`: it has a grant,
--- which is over with this step. Runs that end in ">!" are let in: they follow jobs that are settled with them.
local function bounded_fit(base, plan)
  if string.find(plan.runs, '>!', -2, true) then return nil end
  local look, producer, mine, mine_bytes = room_look(base, plan), string.match(plan.runs, '>(%w+)$'), 0, 0
  if producer then
    local fault = room_sound(base)
    if fault then return fault end
    if redis.call('ZSCORE', base .. 'grants', producer) then
      mine, mine_bytes = room_wish(base, producer)
      plan.used = producer
    end
  end
  if not look.bounded then return nil end
  -- what was promised holds, also where jobs have come back to the queue meanwhile
  if plan.jobs <= mine and plan.bytes <= mine_bytes then return nil end
  local free = look.most - look.count - look.granted + mine + (plan.gone or 0)
  local free_bytes = look.most_bytes - look.bytes - look.granted_bytes + mine_bytes + look.gone_bytes
  if plan.jobs <= free and plan.bytes <= free_bytes and (mine > 0 or not look.blocks or redis.call('ZCARD', base .. 'producers') == 0) then
    return nil
  end
  plan.used = nil
  local said = string.format('%d %d %d %d %d', look.blocks and 1 or 0, look.most < math.huge and look.most or 0,
    look.count, look.granted - mine, plan.jobs)
  if look.most_bytes < math.huge then
    said = said .. string.format(' %d %d %d %d', look.most_bytes, look.bytes, look.granted_bytes - mine_bytes, plan.bytes)
  end
  return redis.error_reply('FULL ' .. said)
end
