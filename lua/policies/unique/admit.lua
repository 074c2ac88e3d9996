--- @hooks kept

--- `run`: of an enqueue.
local function unique_admit(_, run)
  local said = string.match(run.more, '|u([^|~]*)')
  if not said then return end
  local its = unique_tag('|u' .. said)
  local period = its and string.find(its.lasts, '^%d+$') and #its.lasts < 13
  local fits = its and (period or its.lasts == 'e' or its.lasts == 's')
  -- what gets another envelope must not be taken yet
  if fits and (its.answer == 'r' or its.answer == 'd') then fits = its.lasts == 's' end
  if fits and its.answer == 't' then fits = period end
  if not fits or #its.key > 64 or its.most > 999999999999 or its.most > 0 and its.answer ~= 'd'
    or not string.find(said, '^%w+:[%w_-]+$') then
    return redis.error_reply('BADARGS enqueue: a unique key that cannot be read')
  end
  run.tags = run.tags .. '|u' .. said
  run.more = string.gsub(run.more, '|u[^|~]*', '', 1)
end
