--- @include "queue/open"
--- @include "queue/join"

--- `queue_open` for a step whose call needs a policy that the queue may lack: where it may join this script's kind it is
--- of that kind from here on. The step stamps it (`schema_stamp`) with its first writes.
local function queue_joined(base)
  local row = queue_row(base)
  if join_may(row[1]) then
    --- @stamp
    row[1] = STAMP
  end
  return queue_open(base, row)
end
