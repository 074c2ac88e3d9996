--- @include "consumer/notify_opened"
--- @include "limit/tokens"
--- @include "queue/rewound"
--- @hooks delayed

--- Rates that one call looks at for a clock that went back, and ms that it may be wrong by.
local LIMITS_FAR, LIMITS_LATER = '15', 1000

--- When the first in line of a rate finds its tokens is looked at anew, of those that wait longest: after the clock went
--- back they stand in the future, further than a bucket can be empty.
local function limits_upkeep_far(base, queue)
  local far = redis.call('ZREVRANGE', base .. 'tokens_due', '0', LIMITS_FAR, 'WITHSCORES')
  for i = 1, #far, 2 do
    limits_read(base, { far[i] })
    limits_arm(base, queue, far[i])
    local due = tonumber(redis.call('ZSCORE', base .. 'tokens_due', far[i]) or nil)
    local cut = due and tonumber(far[i + 1]) - due or 0
    if cut > LIMITS_LATER then rewound_note(base, queue.now, cut) end
  end
  tokens_write(base, queue.now)
end

--- Permits that limits have and nobody was offered yet go to jobs that wait for them, a page in each call; so do tokens
--- that are due. True where there are more. `taker`: the consumer that looks for work now, which looks itself for what
--- became ready.
local function limits_upkeep(base, queue, taker)
  if not taker then limits_upkeep_far(base, queue) end
  local limits = limits_reopened(base, '16')
  local due = redis.call('ZRANGEBYSCORE', base .. 'tokens_due', '-inf', string.format('%d', queue.now), 'LIMIT', '0',
    LIMITS_PAGE)
  if #due > 0 then redis.call('ZREM', base .. 'tokens_due', unpack(due)) end
  for _, rate in ipairs(due) do limits[#limits + 1] = rate end
  if #limits == 0 then return false end
  local opened = queue.opened
  queue.opened = 0
  limits_open(base, queue, limits)
  if not taker then notify_opened(base, queue) end
  queue.opened = opened
  return redis.call('EXISTS', base .. 'reopened') == 1
end
