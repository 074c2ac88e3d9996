--- Limits that one job may name.
local LIMITS_NAMED = 8

--- `run`: of an enqueue.
local function limits_admit(_, run)
  local tags, count = {}, 0
  for text in string.gmatch(run.more, '|l([^|~]*)') do
    local limit, most = string.match(text, '^([%w%%_-]+=?[%w%%_-]*):(%d+)$')
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
