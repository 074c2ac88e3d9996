--- @include "queue/count"

--- The outbox: jobs that are on their way to other queues. They leave the queue's step with it, in one moment, and are
--- enqueued into their targets by the next client that looks (`outgoing_take`); a target knows an id that came twice.

--- `outgoing`: member by the time before which nobody else sends it (0: nobody has tried); equal ones in the order of
--- their members, which begin with a turn. `outgoing:jobs`: member -> JSON object {target, id, terms, origin} and, behind
--- a line end, the envelope. `entries` = {target = the queue's name, id=, terms= of an enqueue ("4,,0,"), envelope=,
--- origin = a table that says where it comes from, or nil}.
local function outgoing_add(base, entries)
  if #entries == 0 then return end
  local turn = count_up(base .. 'meta', 'outgoing_turn', #entries) - #entries
  local members, jobs = {}, {}
  for i, entry in ipairs(entries) do
    local member = string.format('%014d', turn + i) .. '\n' .. entry.target .. '\n' .. entry.id
    members[2 * i - 1], members[2 * i] = '0', member
    jobs[2 * i - 1] = member
    jobs[2 * i] = cjson.encode({ target = entry.target, id = entry.id, terms = entry.terms, origin = entry.origin })
      .. '\n' .. entry.envelope
  end
  redis.call('HSET', base .. 'outgoing:jobs', unpack(jobs))
  redis.call('ZADD', base .. 'outgoing', unpack(members))
end
