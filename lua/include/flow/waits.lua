--- @include "flow/heard"

--- What jobs wait for, and what is noted of that when parents end.

--- What hooks and includes share; a script has 200 local variables at the most. The most parents that a job may have by
--- name, jobs that may wait for one by name, results that are passed on, and bytes of them; jobs that one call ends
--- because their parents failed; jobs that one command is given. The most parents that a job may have, and for how many ms
--- the producer of a stream may say nothing.
local FLOWS = { NAMED = 100, WAITING = 1000, RESULTS = 1000, BYTES = 1048576, STOPS = 100, PIECE = 500,
  PARENTS = 1000000, LOST_MS = 600000 }

--- {policy=, mode=, total=, ids=, away=, streamed=, open=} by the tags, or the value, of a job; nil where it waits for
--- none. policy: s = it ends where a parent fails, c = a failure counts too, w = it waits until a dead letter lives again
--- and is done, f = it runs only where one fails. mode: n = no results, o = that of the one parent, l = all as a list.
--- ids: names, nil = those derived from its own. away: its workflow is one of several queues; parents say themselves who
--- waits for them. streamed: its parents come as a stream (s in place of the mode), which is not sealed where it is open.
function FLOWS.tag(text)
  local policy, mode, total, away, names = string.match(text or '', '^[^;]-|w([scwf])([nols])(%d+)(@?[^:|;]*):?([^|;]*)')
  if not policy then return nil end
  local its = { policy = policy, mode = mode, total = tonumber(total), away = away ~= '' }
  if mode == 's' then its.mode, its.streamed, its.open = 'n', true, its.total == 0 end
  if names ~= '' then
    its.ids = {}
    for name in string.gmatch(names, '[^/]+') do its.ids[#its.ids + 1] = FLOWS.name(name) end
  end
  return its
end

--- A name that stands escaped in terms and headers.
function FLOWS.name(text)
  return (string.gsub(text, '%%(%x%x)', function(digits) return string.char(tonumber(digits, 16)) end))
end

--- What a parent left, as JSON. `one` = {id=, ok=, result=, state=, cause=}. Many jobs may wait for it.
function FLOWS.left(one)
  if not one.left and one.ok then
    one.left = '[1,' .. ((one.result == '' or one.result == '-') and 'null' or one.result) .. ']'
  elseif not one.left then
    local cause = one.cause or {}
    one.left = '[0,' .. cjson.encode({ id = one.id, state = one.state, type = cause.type, message = cause.message }) .. ']'
  end
  return one.left
end

--- Note that parents have ended: runs of places, or where that is wanted what they `left`, {place, what it left, ...}.
--- Returns whether the job, which has `total` parents, has heard of all; never where more may come. Where the key is of
--- another type the job stays where it is; the doctor says so.
function FLOWS.gather(base, job, its, total, runs, left)
  local key = FLOWS.noted(base, job, its)
  if its.mode ~= 'n' then
    if left and left[1] then redis.pcall('HSET', key, unpack(left)) end
    return redis.pcall('HLEN', key) == total
  end
  -- where they end in their order, the last one says that all have
  return heard_note(key, runs, not its.open and total or nil) and heard_all(key, total)
end

--- The key that has of which parents a job has heard.
function FLOWS.noted(base, job, its)
  return base .. (its.mode == 'n' and 'heard:' or 'gathered:') .. job
end
