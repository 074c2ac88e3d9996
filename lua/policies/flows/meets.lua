--- What a step may meet about any jobs, since others may wait for each: into `found`. `queue`: of a settle, gets `waits`:
--- false where nobody waits, 'derived' where nobody waits for a job by name and nobody is noted that is to end, else
--- 'named'.
local function flows_meets(_, found, base, queue)
  local deferred, edges, stops = base .. 'deferred', base .. 'edges', base .. 'stops'
  local keys = redis.call('EXISTS', deferred, edges, stops, base .. 'unsealed')
  if queue then queue.waits = false end
  -- where nobody waits, nobody hears of an end
  if keys == 0 then return found end
  local alone = keys == 1 and redis.call('TYPE', deferred).ok == 'hash'
  local named = not alone and redis.call('EXISTS', edges, stops) > 0
  if queue then queue.waits = named and 'named' or 'derived' end
  if not alone then
    found[#found + 1] = { 'deferred', 'hash' }
    found[#found + 1] = { 'unsealed', 'zset' }
  end
  -- who waits for no more becomes due; where all is quiet nothing is scheduled
  if not (queue and queue.quiet) then found[#found + 1] = { 'scheduled', 'zset' } end
  if not named then return found end
  --- @include "outgoing/places"
  found[#found + 1] = { 'edges', 'hash' }
  found[#found + 1] = { 'stops', 'hash' }
  return outgoing_places(found)
end
