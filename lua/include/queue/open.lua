--- @include "queue/clock"
--- @include "queue/schema"
--- @include "queue/row"

--- What a step must know of its queue; the first of the checks before the writes. Numbers stay text until a step counts
--- with them.

--- {now=, levels=, paused=, timer=, ranked=, since=, keep=, max=, history_max=, quiet=, ...}, or nil and an error
--- reply. `quiet`: nothing is scheduled, nobody waits, no errors are noted: what a plain busy queue need not look at.
--- `row`: what `queue_row` said, where that was asked already.
local function queue_open(base, row)
  row = row or queue_row(base)
  local fault = schema_fault(row[1])
  if fault then return nil, fault end
  return {
    now = clock(row[2]),
    levels = row[3] or '',
    paused = row[4] == '1',
    timer = row[5],
    ranked = row[6] == '1',
    since = row[7],
    keep = row[8],
    history_max = row[9],
    promoted = row[10],
    acked = tonumber(row[11]) or 0,
    rows = tonumber(row[12]) or 0,
    max = tonumber(row[13]) or 10,
    quiet = redis.call('EXISTS', base .. 'scheduled', base .. 'interested', base .. 'byte_waiters', base .. 'awaited',
      base .. 'errors') == 0,
  }
end
