--- @include "job/value"
--- @include "limit/tokens"
--- @hooks delayed

--- A consumer has taken these jobs; `jobs` = {id, value, ...}. What was set aside of rates is paid, and the next ones get
--- theirs when they are due.
local function limits_taken(base, _, jobs, _, queue)
  local ids, some, names = {}, {}, {}
  for i = 1, #jobs, 2 do
    local job = string.find(jobs[i + 1], '|l@', 1, true) and value_parse(jobs[i + 1])
    local its = job and limits_of(job.tags)
    if its then
      ids[#ids + 1] = jobs[i]
      some[#some + 1] = { attempts = job.attempts, limits = its }
      limits_names(its, names)
    end
  end
  if #ids == 0 then return end
  limits_read(base, names)
  local claims, said, paid = redis.call('HMGET', base .. 'claims', unpack(ids)), {}, {}
  for i, job in ipairs(some) do
    local rules, words, changed = {}, {}, false
    for k = 1, #job.limits, 2 do rules[job.limits[k]] = job.limits[k + 1] end
    for limit, sign, count in limits_claimed(claims[i] or '') do
      if sign == '*' and rules[limit] then
        limits_count(limit, -tonumber(count))
        tokens_pay(limit, limits_rule(limit, rules[limit]), queue.now)
        paid[limit], changed, sign, count = true, true, '!', job.attempts
      end
      words[#words + 1] = limit .. sign .. count
    end
    if changed then
      said[#said + 1] = ids[i]
      said[#said + 1] = table.concat(words, ' ')
    end
  end
  if #said == 0 then return end
  redis.call('HSET', base .. 'claims', unpack(said))
  limits_write(base)
  for limit in pairs(paid) do
    if redis.call('ZSCORE', base .. 'blocked', limit) then limits_arm(base, queue, limit) end
  end
  tokens_write(base, queue.now)
end
