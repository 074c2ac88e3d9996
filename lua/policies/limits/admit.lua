--- Limits that one job may name.
local LIMITS_NAMED = 8

--- `run`: of an enqueue.
local function limits_admit(_, run)
  local tags, count = {}, 0
  for text in string.gmatch(run.more, '|l([^|~]*)') do
    local limit, most = string.match(text, '^([%w%%_-]+=?[%w%%_-]*):(%d+)$')
    if not limit then
      local per, burst, cost
      limit, most, per, burst, cost = string.match(text, '^(@[%w%%_-]+=?[%w%%_-]*):(%d+)/(%d+)%+(%d+)%*(%d+)$')
      if limit and (math.max(#per, #burst, #cost) > 9 or math.min(tonumber(per), tonumber(burst)) < 1) then limit = nil end
    end
    if not limit or #limit > 384 or #most > 9 or tonumber(most) < 1 then
      return redis.error_reply('BADARGS enqueue: a limit that is empty, too long, not escaped, or allows nothing')
    end
    tags[#tags + 1] = '|l' .. text
    count = count + 1
  end
  if count == 0 then return end
  if count > LIMITS_NAMED then return redis.error_reply('BADARGS enqueue: a job that names more than 8 limits') end
  run.tags, run.placed = run.tags .. table.concat(tags), true
  run.more = string.gsub(run.more, '|l[^|~]*', '')
end
