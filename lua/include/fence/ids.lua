--- @include "fence/older"
--- @include "queue/keep"

--- For how long a shard may know the ids of jobs that came before keys left it: as long as one of them lives, and then for
--- as long as records last. Until then who enqueues such an id elsewhere asks here first.

--- More scheduled jobs, or dead letters, than so many are not looked through.
local FENCE_IDS_LOOK = 500

--- Whether a job that came up to this position may still be there.
local function fence_ids_live(base, position)
  for _, key in ipairs({ 'scheduled', 'dead' }) do
    if redis.call('ZCARD', base .. key) > FENCE_IDS_LOOK then return true end
  end
  if redis.call('EXISTS', base .. 'outgoing', base .. 'periods') > 0 then return true end
  for _, member in ipairs(redis.call('ZRANGE', base .. 'scheduled', '0', '-1')) do
    -- what something else put there has no position
    if (tonumber(string.sub(member, 3, MEMBER_PREFIX)) or 0) <= position then return true end
  end
  local dead = redis.call('ZRANGE', base .. 'dead', '0', '-1')
  return fence_older_among(base, dead, position) or fence_older(base, string.format('%d', position))
end

--- Keys may leave the shard now: what it knows from before is remembered.
local function fence_ids_mark(base)
  local meta = base .. 'meta'
  local row = redis.call('HMGET', meta, 'seq', 'tailed')
  if not row[1] then return end
  redis.call('HSET', meta, 'ids_fence', row[1], 'ids_tailed', row[2] or '0')
  redis.call('HDEL', meta, 'ids_gone')
end

--- Whether it may know ids from before; `queue` as it was opened.
local function fence_ids_known(base, queue)
  local meta = base .. 'meta'
  local row = redis.call('HMGET', meta, 'ids_fence', 'ids_gone', 'ids_tailed', 'tailed', 'fence')
  if not row[1] then return false end
  if row[5] then return true end
  -- who went to the tail has a later position than it came with
  if (row[4] or '0') ~= (row[3] or '0') then
    fence_ids_mark(base)
    return true
  end
  if not row[2] then
    local position = tonumber(row[1])
    if position and not fence_ids_live(base, position) then
      redis.call('HSET', meta, 'ids_gone', string.format('%d', queue.now))
    end
    return true
  end
  -- records last for two terms at the most
  if queue.now - tonumber(row[2]) < 2 * queue_keep(queue) then return true end
  redis.call('HDEL', meta, 'ids_fence', 'ids_gone', 'ids_tailed')
  return false
end
