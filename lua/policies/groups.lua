--- One job in flight for each group, in the order of positions, through retry, release, crash and delay; jobs of other
--- groups, and those without one, go on. A group's turn is with one job from when it may be taken until it is gone for
--- good: while it is ready, held, or waits to be tried again. Those behind it stand in the group's list, where no pull
--- looks.
--- HOOKS: admit, busy, claim, shelf, unblock, ahead, pass, done, heads, stands, behind, places, meets, found,
---   repair, turn, ripen
--- META: blocked
--- JOB: tags (g: the group, escaped)
--- KEYS: groups, heads, group:<group>, blocked
--- STORE: list
--- ORDER: 50
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: selectors, sorted, last_value, lifetime, ring, refusals, limits, front, shares
--- @include "job/value"
--- @include "order/score"
--- @include "queue/count"
--- @include "schedule/member"
--- @hooks expose

--- `groups`: group -> id of the job that has its turn. `heads`: the ready heads, by the job that has the turn where that
--- is ready: members as of `scheduled`, by `score_of`. `group:<group>`: those behind, by position. `blocked`: groups that
--- have such ones.

--- The tag that says which jobs wait for each other, in tags and in a stored value: those of a group.
local GROUPS = { tag = '|g([^|]*)', stored = '^[^;]-|g([^|;]*)' }
--- @if expose
-- those of a bucket, by number; its owner decides where the one with the turn stands
GROUPS.tag, GROUPS.stored = '|[bB]([^|]*)', '^[^;]-|[bB]([^|;]*)'
--- @end

--- The group of a job by its tags, as it stands in the names of keys; nil where it has none.
local function groups_name(job)
  return job.tags and string.match(job.tags, GROUPS.tag)
end

--- The key of the set in which the job with the turn of a group stands while it is ready.
local function groups_key(base, group)
  local key
  --- @each key = stall(base, group)
  return key or base .. 'heads'
end

--- The jobs with the turns of these groups are ready: `open` = {score, member, ...}.
local function groups_ready(base, groups, open)
  --- @if expose
  --- @each expose(base, groups, open)
  do return end
  --- @end
  redis.call('ZADD', base .. 'heads', unpack(open))
end

--- `run`: of an enqueue.
local function groups_admit(queue, run)
  local group = string.match(run.more, '|g([^|~]*)')
  if not group then return end
  if group == '' or #group > 384 or string.find(group, '[^%w%%_-]') then
    return redis.error_reply('BADARGS enqueue: a group that is empty, too long or not escaped')
  end
  run.tags, run.placed = run.tags .. '|g' .. group, true
  run.more = string.gsub(run.more, '|g[^|~]*', '', 1)
end

--- Whether a job of this run would have to wait for another one of its group.
local function groups_busy(base, run)
  local group = groups_name(run)
  return group and redis.call('HEXISTS', base .. 'groups', group) == 1 or nil
end

--- It was delivered directly: the turn of its group is with it.
local function groups_claim(base, job)
  local group = groups_name(job)
  if group then redis.call('HSET', base .. 'groups', group, job.id) end
end

local function groups_by_position(one, other)
  return one.position < other.position
end

--- These jobs ({id=, level=, position=, due=, tags=, ...}) are to be ready: new, due, or back from a consumer. Those
--- with a group go to their places; the others are returned. `queue.kept_back` counts those that are not ready after
--- all. What waits behind others of its group waits by its position, and has no due time any more.
local function groups_shelf(base, queue, jobs)
  local mine, names, rest, sorted = {}, {}, {}, true
  for _, job in ipairs(jobs) do
    job.group = groups_name(job)
    if job.group then
      sorted = sorted and (#mine == 0 or mine[#mine].position < job.position)
      mine[#mine + 1] = job
    else
      rest[#rest + 1] = job
    end
  end
  if #mine == 0 then return jobs end
  if not sorted then table.sort(mine, groups_by_position) end
  for i, job in ipairs(mine) do names[i] = job.group end
  local turns, claimed, turned, open = redis.call('HMGET', base .. 'groups', unpack(names)), {}, {}, {}
  local places, behind, waiting, stored, opened = {}, {}, 0, {}, {}
  for i, job in ipairs(mine) do
    local group, member = job.group, schedule_member(job, job.id)
    local turn = claimed[group] or turns[i]
    if not turn then
      turn, claimed[group] = job.id, job.id
      turned[#turned + 1] = group
      turned[#turned + 1] = job.id
    end
    if turn == job.id then
      open[#open + 1] = job.due > 0 and string.format('%d', score_of(job.level, job.due)) or score_text(member)
      open[#open + 1] = member
      opened[#opened + 1] = group
    else
      local its = places[group]
      if not its then
        its = {}
        places[group] = its
        behind[#behind + 1] = '0'
        behind[#behind + 1] = group
      end
      its[#its + 1] = string.format('%d', job.position)
      its[#its + 1] = member
      waiting = waiting + 1
      if job.due > 0 then
        job.due = 0
        stored[#stored + 1] = job.id
        stored[#stored + 1] = value_header(job) .. job.envelope
      end
    end
  end
  if #turned > 0 then redis.call('HSET', base .. 'groups', unpack(turned)) end
  if #open > 0 then groups_ready(base, opened, open) end
  if waiting > 0 then
    for group, its in pairs(places) do redis.call('ZADD', base .. 'group:' .. group, unpack(its)) end
    redis.call('ZADD', base .. 'blocked', unpack(behind))
    count_up(base .. 'meta', 'blocked', waiting)
    queue.kept_back = (queue.kept_back or 0) + waiting
  end
  if #stored > 0 then redis.call('HSET', base .. 'jobs', unpack(stored)) end
  return rest
end

--- These groups have given something away: what is empty has no one behind any more.
local function groups_emptied(base, groups, keys)
  if #keys == 0 or redis.call('EXISTS', unpack(keys)) == #keys then return end
  for i, group in ipairs(groups) do
    if redis.call('EXISTS', keys[i]) == 0 then redis.call('ZREM', base .. 'blocked', group) end
  end
end

--- A job that waits leaves: out of its place. Answers whether it was `ready` or `blocked`; nil where it stands in no
--- place of groups.
local function groups_unblock(base, queue, job)
  local group = groups_name(job)
  if not group then return nil end
  local member = schedule_member(job, job.id)
  if redis.call('ZREM', groups_key(base, group), member) == 1 then return 'ready' end
  if redis.call('ZREM', base .. 'group:' .. group, member) == 0 then return nil end
  groups_emptied(base, { group }, { base .. 'group:' .. group })
  count_up(base .. 'meta', 'blocked', -1)
  return 'blocked'
end

--- The id of the job with the turn of this group; nil where it has none.
local function groups_turn(base, group)
  return redis.call('HGET', base .. 'groups', group) or nil
end

--- The job that goes before this one, which waits behind it; nil where it waits behind none.
local function groups_ahead(base, job)
  local group = groups_name(job)
  if not group or not redis.call('ZSCORE', base .. 'group:' .. group, schedule_member(job, job.id)) then return nil end
  return redis.call('HGET', base .. 'groups', group) or ''
end

--- The jobs `ids` of the groups `names` are gone: where one had the turn, the next of its group gets it, and is ready.
local function groups_pass_on(base, queue, ids, names)
  local call, sub = redis.call, string.sub
  local turns = call('HMGET', base .. 'groups', unpack(names))
  local behind = call('ZMSCORE', base .. 'blocked', unpack(names))
  local over, passed, keys, turned, open, count, prefix = {}, {}, {}, {}, {}, 0, base .. 'group:'
  for i = 1, #names do
    if turns[i] == ids[i] then
      local group, key, next_ = names[i], nil, nil
      if behind[i] then
        key = prefix .. group
        next_ = call('ZPOPMIN', key)
      end
      local member = next_ and next_[1]
      if member then
        count = count + 1
        passed[count], keys[count] = group, key
        open[2 * count - 1] = score_text(member)
        open[2 * count] = member
        turned[2 * count - 1] = group
        turned[2 * count] = sub(member, MEMBER_PREFIX + 1)
      else
        over[#over + 1] = group
      end
    end
  end
  if #over > 0 then call('HDEL', base .. 'groups', unpack(over)) end
  if count == 0 then return end
  call('HSET', base .. 'groups', unpack(turned))
  groups_ready(base, passed, open)
  groups_emptied(base, passed, keys)
  count_up(base .. 'meta', 'blocked', -count)
  queue.opened = (queue.opened or 0) + count
end

--- These jobs ({id=, tags=}) are gone for good, or leave their groups until they come again. `queue.opened` counts those
--- that are ready by that.
local function groups_pass(base, queue, jobs)
  local ids, names = {}, {}
  for _, job in ipairs(jobs) do
    local group = groups_name(job)
    if group then
      names[#names + 1], ids[#ids + 1] = group, job.id
    end
  end
  if #ids > 0 then groups_pass_on(base, queue, ids, names) end
end

--- The same of jobs that are done, whose values are about to go.
local function groups_done(base, queue, gone)
  if redis.call('EXISTS', base .. 'groups') == 0 then return end
  local match, ids, names, count = string.match, {}, {}, 0
  local values = redis.call('HMGET', base .. 'jobs', unpack(gone))
  for i = 1, #gone do
    local group = values[i] and match(values[i], GROUPS.stored)
    if group then
      count = count + 1
      names[count], ids[count] = group, gone[i]
    end
  end
  if count > 0 then groups_pass_on(base, queue, ids, names) end
end

--- Where ready jobs stand beside the lists.
local function groups_heads(base)
  return { base .. 'heads', lists = true }
end

--- The one of these in which a ready job stands; nil: in none.
local function groups_stands(base, job)
  return redis.call('ZSCORE', base .. 'heads', schedule_member(job, job.id)) and base .. 'heads'
end

local function groups_places(_, found)
  found[#found + 1] = { 'groups', 'hash' }
  found[#found + 1] = { 'heads', 'zset' }
  found[#found + 1] = { 'blocked', 'zset' }
  return found
end

--- What a step about jobs with these values, or tags, may meet: into `found`.
local function groups_meets(values, found)
  local seen, any, match = {}, false, string.match
  for _, value in ipairs(values) do
    local group = value and match(value, GROUPS.stored)
    if group and not seen[group] then
      seen[group], any = true, true
      found[#found + 1] = { 'group:' .. group, 'zset' }
    end
  end
  return any and groups_places(nil, found) or found
end

--- How many of its group stand before this job behind the first one; nil where it is none of those.
local function groups_behind(base, job)
  local group = groups_name(job)
  return group and redis.call('ZRANK', base .. 'group:' .. group, schedule_member(job, job.id)) or nil
end

--- Where this job is, for who checks: into `found` goes each place and 1, and `turn` where the turn is with it.
local function groups_found(base, job, found)
  local group = groups_name(job)
  local member = group and schedule_member(job, job.id)
  local function add(place)
    found[#found + 1] = place
    found[#found + 1] = 1
  end
  if group and redis.call('ZSCORE', base .. 'heads', member) then add('heads') end
  if group and redis.call('ZSCORE', base .. 'group:' .. group, member) then add('group:' .. group) end
  if group and redis.call('HGET', base .. 'groups', group) == job.id then add('turn') end
  return found
end

--- Set a group right, whatever was there: its turn is with a job that is ready, scheduled to come back, or held (`held`:
--- a function that says who holds an id), else with the first one behind. What is no such job leaves the
--- first 500 behind. Answers how much was changed.
local function groups_repair(base, queue, group, held)
  local key, changed = base .. 'group:' .. group, 0
  local turn = redis.call('HGET', base .. 'groups', group)
  if turn then
    local value = redis.call('HGET', base .. 'jobs', turn)
    local job = value and string.byte(value) ~= 33 and value_parse(value)
    local there = false
    if job and groups_name(job) == group and not redis.call('ZSCORE', base .. 'dead', turn) then
      local member = schedule_member(job, turn)
      there = redis.call('ZSCORE', groups_key(base, group), member) or redis.call('ZSCORE', base .. 'scheduled', member)
        or held(turn)
    end
    if not there then
      redis.call('HDEL', base .. 'groups', group)
      turn, changed = false, changed + 1
    end
  end
  for _, member in ipairs(redis.call('ZRANGE', key, '0', '499')) do
    local id = string.sub(member, MEMBER_PREFIX + 1)
    local value = redis.call('HGET', base .. 'jobs', id)
    local job = value and string.byte(value) ~= 33 and value_parse(value)
    if not job or groups_name(job) ~= group or schedule_member(job, id) ~= member then
      changed = changed + redis.call('ZREM', key, member)
    end
  end
  local behind = redis.call('ZCARD', key)
  if not turn and behind > 0 then
    redis.call('HSET', base .. 'groups', group, '')
    redis.call('ZADD', base .. 'blocked', '0', group)
    groups_pass_on(base, queue, { '' }, { group })
    behind, changed = behind - 1, changed + 1
  end
  if behind > 0 then
    changed = changed + redis.call('ZADD', base .. 'blocked', '0', group)
  else
    changed = changed + redis.call('ZREM', base .. 'blocked', group)
  end
  return changed
end
