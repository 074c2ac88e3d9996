--- `run`: of an enqueue.
local function unique_admit(_, run)
  local said = string.match(run.more, '|u([^|~]*)')
  if not said then return end
  local lasts, key = string.match(said, '^(%w+)[xf]:([%w_-]+)$')
  if not key or #key > 64 or not (lasts == 'e' or lasts == 's' or string.find(lasts, '^%d+$') and #lasts < 13) then
    return redis.error_reply('BADARGS enqueue: a unique key that cannot be read')
  end
  run.tags = run.tags .. '|u' .. said
  run.more = string.gsub(run.more, '|u[^|~]*', '', 1)
end
