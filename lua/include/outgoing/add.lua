--- @include "queue/count"

--- The outbox: jobs that are on their way to other queues, and ends of jobs that others wait for there. They leave the
--- queue's step with it, in one moment, and come into their targets by the next client that looks (`outgoing_take`); a
--- target knows an id, or an end, that came twice. A job counts there as enqueued when its terms were made.

--- `outgoing`: member by the time before which nobody else sends it (0: nobody has tried); equal ones in the order of
--- their members, which begin with a turn. `outgoing:jobs`: member -> JSON object {target, id, terms, at, origin, ends} and,
--- behind a line end, the envelope. `entries` = {target = the queue's name, id=, terms= of an enqueue ("4,,0,"),
--- at= when these were made, ms,
--- envelope=, origin = a table that says where it comes from, or nil}; or {target=, id = of the job that waits, ends = of
--- how many jobs, envelope = what is said to `join` of these}: what stands behind the turn of such a member is a tabulator.
local function outgoing_add(base, entries)
  if #entries == 0 then return end
  local turn = count_up(base .. 'meta', 'outgoing_turn', #entries) - #entries
  local members, jobs = {}, {}
  for i, entry in ipairs(entries) do
    local member = string.format('%014d', turn + i) .. (entry.ends and '\t' or '\n') .. entry.target .. '\n' .. entry.id
    members[2 * i - 1], members[2 * i] = '0', member
    jobs[2 * i - 1] = member
    jobs[2 * i] = cjson.encode({ target = entry.target, id = entry.id, terms = entry.terms, at = entry.at, origin = entry.origin,
      ends = entry.ends }) .. '\n' .. entry.envelope
  end
  redis.call('HSET', base .. 'outgoing:jobs', unpack(jobs))
  redis.call('ZADD', base .. 'outgoing', unpack(members))
end
