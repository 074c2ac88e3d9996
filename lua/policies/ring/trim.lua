--- @include "queue/open"
--- @include "finish/end"
--- @include "order/lowest"
--- @hooks displace

--- Jobs that end in one call at the most.
local RING_MOST = 500

--- The oldest of the lowest level end where more jobs are ready than may be. Answers how many are ready then; nil where
--- there is no limit. `queue`: false where it was not opened yet.
local function ring_trim(base, queue)
  local ready, most = ring_count(base)
  if not ready or ready <= most then return ready end
  local ids = {}
  ready = ready - lowest_take(base, math.min(ready - most, RING_MOST), ids)
  end_jobs(base, queue or queue_open(base), ids, 'R', 'displaced')
  return ready
end
