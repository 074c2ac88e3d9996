--- A job of a higher level goes first. In a level those that were due go before the others, by due time; the others by
--- position. Jobs wait in lists, one or two for each level.
--- HOOKS: admit, rank, places
--- META: priorities, levels, promoted
--- JOB: level, due
--- KEYS: ready:<level>, due:<level>
--- STORE: list
--- ORDER: 70
--- FAST: yes
--- STRUCTURE: places
--- EXCLUDES: none

--- Q-11: JMS priorities are mapped onto the queue's levels.
local function levels_admit(queue, run)
  local offset = math.max(0, 5 - math.ceil(queue.priorities / 2))
  run.level = math.max(0, math.min(queue.priorities - 1, run.priority - offset))
end

--- The list of a job: a job whose header says no due time waits in `ready:<level>`; one that says when it was due in
--- `due:<level>`.
local function levels_rank(base, job)
  return base .. (job.due > 0 and 'due:' or 'ready:') .. job.level
end

--- `in_use`: meta's field `levels`, high to low ("9,4").
local function levels_places(in_use, found)
  for level in string.gmatch(in_use or '', '%d+') do
    found[#found + 1] = { 'ready:' .. level, 'list' }
    found[#found + 1] = { 'due:' .. level, 'list' }
  end
  return found
end
