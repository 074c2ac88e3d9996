--- @include "flow/waits"

--- @hooks awaits

--- `run`: of an enqueue.
local function flows_admit(_, run)
  local said = string.match(run.more, '|w([^|~]*)')
  if said then
    local its = FLOWS.tag('|w' .. said)
    if not its or not string.find(said, '^%a%a%d+@?[%w%%_/-]*$') and not string.find(said, '^%a%a%d+@?[%w%%_/-]*:[%w%%_/-]+$')
      or its.total > FLOWS.PARENTS or its.mode == 'o' and its.total ~= 1
      or its.streamed and (its.total > 0 or its.ids or its.away or its.policy == 'f')
      or its.policy == 'f' and not (its.ids and its.total == 1)
      or its.mode == 'l' and its.total > FLOWS.RESULTS
      or its.ids and (#its.ids ~= its.total or its.total > FLOWS.NAMED) then
      return redis.error_reply('BADARGS enqueue: parents that cannot be read, or too many of them')
    end
    run.waits = its
    run.tags = run.tags .. '|w' .. said
    run.more = string.gsub(run.more, '|w[^|~]*', '', 1)
  end
  local rest, found = string.gsub(run.more, '|p', '', 1)
  if found == 1 then
    run.counts, run.more = true, rest
    run.tags = run.tags .. '|p'
  end
  for mode, queue, place, job in string.gmatch(run.more, '|t([nr])([%w%%_-]*):?(%d*)/?([%w%%_-]*)') do
    run.dependants = run.dependants or {}
    run.dependants[#run.dependants + 1] = { mode = mode, queue = queue, place = place, job = job }
    if queue .. place == '' or (place == '') ~= (job == '') or #run.dependants > FLOWS.WAITING then
      return redis.error_reply('BADARGS enqueue: jobs that wait for one, and cannot be read, or too many of them')
    end
  end
  if run.dependants then
    run.more = string.gsub(run.more, '|t[^|~]*', '')
    run.tags = run.tags .. '|t'
  end
end
