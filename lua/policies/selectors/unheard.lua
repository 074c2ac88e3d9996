--- @hooks audience
--- @include "order/unlabelled"
--- @include "consumer/most"

--- Classes with ready jobs that no registered consumer takes: labels, jobs, ... into `found`; "?" is what has no labels
--- noted.
local function selectors_unheard(base, found)
  local seen, all = {}, {}
  for _, name in ipairs(redis.call('ZRANGE', base .. 'consumers', 0, CONSUMERS_LAST)) do
    local row = redis.call('HMGET', base .. 'consumer:' .. name, 'mode', 'audience')
    if row[1] == 'acquire' then seen[row[2] or '0'] = true end
  end
  if seen['0'] then return found end
  local function heard(class)
    for audience in pairs(seen) do
      if selectors_hear(base, audience, class) then return true end
    end
  end
  for labels, class in pairs(selectors_classes(base)) do
    local ready = redis.call('ZCARD', base .. 'class:' .. class)
    if ready > 0 and not heard(class) then
      found[#found + 1] = labels
      found[#found + 1] = ready
    end
  end
  local others = unlabelled_count(base)
  if others > 0 then
    found[#found + 1] = '?'
    found[#found + 1] = others
  end
  return found
end
