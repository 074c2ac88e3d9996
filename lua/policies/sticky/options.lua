--- @include "order/any"
--- @hooks audience

--- What may be configured, into `limits`. The bucket of a job is noted in it.
local function sticky_options(base, limits, given)
  limits.sticky, limits.rebalance = { 1, STICKY_MOST }, { 0, 1 }
  if given.sticky and any_job(base)
    and redis.call('HGET', base .. 'meta', 'sticky') ~= given.sticky then
    return redis.error_reply('CONFLICT sticky cannot change while the queue has jobs: let them end, or purge them')
  end
end
