--- The stamp of a queue: the version of the schema and, unless it is plain, the policies of its kind. A plain queue is
--- stamped by its first write, another kind by the client that declares it. A queue with another stamp is left alone:
--- the stamp is returned to the client, which sends the script of that kind. A script that is the same for all kinds
--- has no STAMP.

--- An error reply where the queue was written by another version or is of another kind, else nil. `stamp`: field `v` of
--- meta, or false.
local function schema_fault(stamp)
  --- @stamp
  if stamp == STAMP or not stamp and STAMP == '1' then return nil end
  if stamp and string.match(stamp, '^%S*') ~= '1' then
    return redis.error_reply('SCHEMA this queue was written by another version of rqueue: schema ' .. stamp)
  end
  if STAMP then return redis.error_reply('KIND ' .. (stamp or '1')) end
end
