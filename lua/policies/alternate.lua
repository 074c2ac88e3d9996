--- Dead letters, or expired jobs, go to another queue. They leave in the same step, into the outbox, and a queue that a
--- job has passed gets it no second time: there it stays a dead letter.
--- HOOKS: route, named, keeps
--- META: dead_to, expired_to
--- JOB: none
--- KEYS: none
--- STORE: list
--- ORDER: 80
--- FAST: yes
--- STRUCTURE: none
--- EXCLUDES: none

--- Queues that a job passes at the most.
local ALTERNATE_MOST = 8

--- Whether the job has been in this queue, or in as many as it may pass. Its envelope names them.
local function alternate_passed(job, target)
  if not string.find(job.envelope, '"origin":{', 1, true) then return false end
  local readable, parts = pcall(cjson.decode, string.match(job.envelope, '%[.*') or '')
  local opts = readable and type(parts) == 'table' and type(parts[4]) == 'table' and parts[4]
  local via = opts and type(opts.origin) == 'table' and type(opts.origin.via) == 'table' and opts.origin.via or {}
  for _, name in ipairs(via) do
    if name == target then return true end
  end
  return #via >= ALTERNATE_MOST
end

--- Where a job goes that is dead or expired; nil: it stays here.
local function alternate_route(base, job, outcome)
  if job.damaged then return nil end
  local target = redis.call('HGET', base .. 'meta', outcome == 'expired' and 'expired_to' or 'dead_to')
  if not target or target == '' or alternate_passed(job, target) then return nil end
  return target
end

--- Options that are names of queues, "" = none: out of `changed` {option, value, ...} into `names`.
local function alternate_named(changed, names)
  for i = #changed - 1, 1, -2 do
    if changed[i] == 'dead_to' or changed[i] == 'expired_to' then
      names[#names + 1] = changed[i]
      names[#names + 1] = changed[i + 1]
      table.remove(changed, i)
      table.remove(changed, i)
    end
  end
end

--- Whether the policy cannot be given up: an error reply.
local function alternate_keeps(base, given_up)
  local targets = redis.call('HMGET', base .. 'meta', 'dead_to', 'expired_to')
  if given_up.alternate and (targets[1] or targets[2]) then
    return redis.error_reply('CONFLICT kind keeps alternate while dead_to or expired_to names a queue')
  end
end
