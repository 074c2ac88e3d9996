--- @include "queue/open"
--- @include "finish/end"
--- @include "order/lowest"
--- @hooks displace

--- Jobs that end in one call at the most, and that are looked at together where bytes count.
local RING_MOST, RING_LOOKS = 500, 100

--- The oldest of the lowest level end where more jobs are ready than may be. Answers how many are ready then; nil where
--- there is no limit. `queue`: false where it was not opened yet.
local function ring_trim(base, queue)
  local look = ring_look(base)
  if not look then return nil end
  local ready, bytes, ids = look.ready, look.bytes, {}
  if ready > look.most then ready = ready - lowest_take(base, math.min(ready - look.most, RING_MOST), ids) end
  --- @if weight
  --- @include "size/sum"
  --- @include "order/lowest_peek"
  bytes = bytes - size_sum(base, ids)
  while bytes > look.most_bytes and #ids < RING_MOST do
    -- no more than has to
    local first, want, some = lowest_peek(base, RING_LOOKS), 0, {}
    if #first == 0 then break end
    for _, size in ipairs(size_sum_each(base, first)) do
      if bytes <= look.most_bytes then break end
      if size then want, bytes = want + 1, bytes - (tonumber(size) or 0) end
    end
    ready = ready - lowest_take(base, math.max(want, 1), some)
    for _, id in ipairs(some) do ids[#ids + 1] = id end
    if want == 0 then bytes = bytes - size_sum(base, some) end
  end
  --- @end
  if #ids > 0 then end_jobs(base, queue or queue_open(base), ids, 'R', 'displaced') end
  return ready
end
