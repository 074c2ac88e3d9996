--- @include "queue/constants"
--- @hooks admit

--- Jobs that are not all ordinary, in runs of consecutive ones that share level, due time and limit.

--- `text`: "<priority>,<when>[-<age>],<max>[:<max crashes>][<more>],<count>;..." as runs {level=, due=, max=,
--- max_crashes=, age=, away=, count=}, due 0 where that is now or past; or nil and an error reply. `age`: ms since the
--- enqueue, of a job that was on its way here (`away`): it counts as enqueued then. `more`: words that begin with "~" or "|", for policies.
--- `queue` = {base=, now=, priorities=}.
local function batch_terms_read(text, total, queue)
  local plan, planned, now, fault = {}, 0, queue.now, nil
  for priority, sign, when, away, age, max, crashes, more, count in
    string.gmatch(text, '(%-?%d+),([+@]?)(%d*)(%-?)(%d*),(%d+):?(%d*)([^,;]*),(%d+)') do
    local due = 0
    age = tonumber(age) or 0
    if sign == '+' then due = now - age + tonumber(when) elseif sign == '@' then due = tonumber(when) end
    local run = {
      priority = tonumber(priority),
      due = due > now and due or 0,
      max = tonumber(max),
      max_crashes = tonumber(crashes) or 0,
      age = age,
      away = away ~= '',
      count = tonumber(count),
      more = more,
      tags = '',
    }
    plan[#plan + 1] = run
    --- @each fault = admit(queue, run)
    if fault then return nil, fault end
    if run.more ~= '' then return nil, redis.error_reply('BADARGS enqueue: terms that say ' .. run.more) end
    planned = planned + tonumber(count)
  end
  if planned == total then return plan end
  return nil, redis.error_reply('BADARGS enqueue: the runs speak of ' .. planned .. ' jobs, the arguments hold ' .. total)
end

--- Lay out the jobs of a plan: into `stored` go {id, value, ...}. `ids` holds false for those that are refused;
--- `arguments` is {..., id, envelope, ...} from `first` on; the next position is `position` + 1. Returns the ids that
--- are ready by level, what is scheduled {{due=, level=, position=, id=}, ..., soonest=} or nil, and how many are
--- ready. `plan.placed`: ready ones that policies have places for.
local function batch_terms_lay_out(plan, ids, position, now, stored, arguments, first)
  local lists, scheduled, ready, index = {}, nil, 0, 0
  for _, run in ipairs(plan) do
    local level, due, enqueued = run.level, run.due, now - run.age - EPOCH
    local tail
    if run.expires and run.expires > 0 then
      tail = string.format(',%d,%d,0,0,%d,%d,0,%d,%d', enqueued, level, run.max, due, run.max_crashes, run.expires)
    elseif run.max_crashes > 0 then
      tail = string.format(',%d,%d,0,0,%d,%d,0,%d', enqueued, level, run.max, due, run.max_crashes)
    elseif level == 4 and run.max == 0 and due == 0 then
      tail = string.format(',%d', enqueued)
    else
      tail = string.format(',%d,%d,0,0,%d,%d', enqueued, level, run.max, due)
    end
    tail = tail .. run.tags .. ';'
    for i = index + 1, index + run.count do
      local id = ids[i]
      if id then
        position = position + 1
        stored[#stored + 1] = id
        stored[#stored + 1] = string.format('%d', position) .. tail .. arguments[first + 2 * i - 1]
        --- @if defers
        if run.dependants then
          plan.dependants = plan.dependants or {}
          table.insert(plan.dependants, { id = id, dependants = run.dependants })
        end
        if run.waits then
          plan.deferred = plan.deferred or {}
          table.insert(plan.deferred, { id = id, waits = run.waits })
        else
        --- @end
        if due > 0 then
          scheduled = scheduled or { soonest = due }
          scheduled[#scheduled + 1] = { due = due, level = level, position = position, id = id }
          scheduled.soonest = math.min(scheduled.soonest, due)
        else
          lists[level] = lists[level] or {}
          local ordinary = true
          --- @if shelf
          if run.placed then
            ordinary = false
            plan.placed = plan.placed or {}
            table.insert(plan.placed, { id = id, level = level, position = position, due = 0, tags = run.tags })
          end
          --- @end
          if ordinary then table.insert(lists[level], id) end
          ready = ready + 1
        end
        --- @if defers
        end
        --- @end
      end
    end
    index = index + run.count
  end
  return lists, scheduled, ready
end
