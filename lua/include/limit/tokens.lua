--- @include "queue/constants"

--- Token buckets of rates: a bucket gets `count` tokens in `per` ms, one after the other, and holds `burst` at the most. A
--- job takes as many as it costs, and all where that is more than the bucket holds.

--- `rates`: rate -> when its bucket is full again, ms since EPOCH, with fractions: that is all there is of it. What is
--- past says nothing.

--- Of this call: rate -> when it is full again; which of them have changed.
local TOKENS = { full = {}, changed = {} }

--- {every=, burst=, cost=} of "<count>/<per>+<burst>*<cost>"; `every`: ms from one token to the next, nil: there comes
--- none. `set`: what an operator says instead, but for the cost.
local function tokens_rule(said, set)
  local count, per, burst = string.match(set or said, '^(%d+)/(%d+)%+(%d+)')
  count, per, burst = tonumber(count) or 0, tonumber(per) or 0, tonumber(burst) or 1
  local cost = math.min(tonumber(string.match(said, '%*(%d+)$')) or 1, burst)
  return { every = count > 0 and per / count or nil, burst = burst, cost = cost }
end

--- How long it lasts until the bucket is full, ms. One that has become smaller, or faster, is not emptier than empty from
--- now on; nor is one whose clock was set back.
local function tokens_ahead(rate, rule, now)
  local ahead, empty = math.max(0, TOKENS.full[rate] - (now - EPOCH)), rule.burst * rule.every
  if ahead <= empty then return ahead end
  TOKENS.full[rate], TOKENS.changed[rate] = now - EPOCH + empty, true
  return empty
end

--- ms until a job of this rule finds its tokens; 0: they are there. nil: no time brings them, only jobs that take, or give
--- back, some of the `reserved` ones.
local function tokens_wait(rate, rule, reserved, now)
  local room = rule.burst - reserved - rule.cost
  if not rule.every or room < 0 then return nil end
  local wait = tokens_ahead(rate, rule, now) - room * rule.every
  -- below what these numbers can tell apart
  return wait > 0.001 and wait or 0
end

--- A job of this rule takes its tokens.
local function tokens_pay(rate, rule, now)
  if not rule.every then return end
  TOKENS.full[rate] = now - EPOCH + tokens_ahead(rate, rule, now) + rule.cost * rule.every
  TOKENS.changed[rate] = true
end

--- Write what was paid, or has become another bucket; for each rate two go that say nothing any more.
local function tokens_write(base, now)
  local some = {}
  for rate in pairs(TOKENS.changed) do
    some[#some + 1] = string.format('%.17g', TOKENS.full[rate])
    some[#some + 1] = rate
  end
  if #some == 0 then return end
  TOKENS.changed = {}
  redis.call('ZADD', base .. 'rates', unpack(some))
  local past = redis.call('ZRANGEBYSCORE', base .. 'rates', '-inf', string.format('(%d', now - EPOCH), 'LIMIT', '0', #some)
  if #past > 0 then redis.call('ZREM', base .. 'rates', unpack(past)) end
end
