--- Sticky groups: the consumer that takes a job of a group gets all later ones of it too, until it leaves or the group
--- is reset; then the next one to take a job of it does (Q-64, A-26). Groups fall into a number of buckets, and it is a
--- bucket that has an owner, and one job in flight: what is kept does not grow with the number of groups.
--- HOOKS: admit, expose, stall, kept, marked, claim, taken, heads, stands, found, places, keys, meets, audience, able,
---   tell, closing, waiters, joined, gone, bucketed, owner, reset,
---   options, restamp
--- META: sticky, rebalance
--- JOB: tags (b: the bucket; B: the same where the job is the first of it that its consumer is delivered)
--- KEYS: owners, heads, own:<consumer>
--- STORE: list
--- ORDER: 12
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: exclusive, shard
--- @include "consumer/ahead"
--- @include "order/score"
--- @include "schedule/member"

--- `owners`: bucket -> its consumer. The policy `groups` keeps turns by bucket here: the one job of a bucket that may be
--- taken stands in `own:<consumer>` where that is its owner, and in `heads` where it has none; members and scores are
--- those of `heads`. So a consumer looks at nothing that it does not take, and an owner that leaves leaves one ready job
--- of each bucket at the most, whatever waits behind it.

--- Buckets of a queue that does not say how many, and at the most.
local STICKY_BUCKETS, STICKY_MOST = 1024, 4096

--- Members that one command moves.
local STICKY_CHUNK = 1000

--- Of this call. `own`: consumer -> how many became ready for it; `common`: for anybody; `mine`: the consumer that
--- the call is about; `left`: a pull has left some to others.
local STICKY = { own = {}, common = 0, left = false }

--- The bucket of a job by its tags; nil where it has no group.
local function sticky_bucket(job)
  return job.tags and string.match(job.tags, '|[bB](%d+)')
end

--- The same of a stored value.
local function sticky_bucket_of(value)
  return value and string.match(value, '^[^;]-|[bB](%d+)')
end

--- Where the ready jobs of an owner stand; of none: those that are anybody's.
local function sticky_key(base, owner)
  return owner and base .. 'own:' .. owner or base .. 'heads'
end

--- The consumers that own buckets.
local function sticky_consumers(base)
  local seen, names = {}, {}
  for _, name in ipairs(redis.call('HVALS', base .. 'owners')) do
    if not seen[name] then
      seen[name] = true
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

--- The jobs with the turns of these buckets are ready: `open` = {score, member, ...}.
local function sticky_expose(base, buckets, open)
  local owners, sets = redis.call('HMGET', base .. 'owners', unpack(buckets)), {}
  for i = 1, #buckets do
    local owner = owners[i]
    local its = sets[owner] or {}
    sets[owner] = its
    its[#its + 1] = open[2 * i - 1]
    its[#its + 1] = open[2 * i]
    if owner then
      STICKY.own[owner] = (STICKY.own[owner] or 0) + 1
    else
      STICKY.common = STICKY.common + 1
    end
  end
  for owner, its in pairs(sets) do redis.call('ZADD', sticky_key(base, owner), unpack(its)) end
end

--- The key of the set in which the job with the turn of this bucket stands while it is ready.
local function sticky_stall(base, bucket)
  return sticky_key(base, redis.call('HGET', base .. 'owners', bucket))
end

--- A job is about to come back: it is nobody's first one any more.
local function sticky_kept(_, job)
  if job.tags and job.tags ~= '' then job.tags = string.gsub(job.tags, '|B', '|b') end
end

--- Whether another consumer goes before this one where both may take (Q-45).
local function sticky_outranked(base, consumer)
  local mine = tonumber(consumer.priority) or 0
  local first = redis.call('ZRANGE', base .. 'interested', '0', '1', 'WITHSCORES')
  local at = first[1] == consumer.name and 3 or 1
  if first[at] and ahead_priority(first[at + 1]) > mine then return true end
  for _, one in ipairs(ahead_notified(base, 'priority', consumer.name)) do
    if one[1] > mine then return true end
  end
  return false
end

--- So many jobs of new buckets are one consumer's to take: an equal part for each of those that may pull now, so that
--- the first one to come does not own all there are. nil: as many as it likes.
local function sticky_share(base, name)
  local ready = redis.call('ZCARD', base .. 'heads')
  if ready < 2 then return nil end
  local others = redis.call('ZCARD', base .. 'interested') + redis.call('ZCARD', base .. 'notified')
  if redis.call('ZSCORE', base .. 'interested', name) or redis.call('ZSCORE', base .. 'notified', name) then
    others = others - 1
  end
  if others < 1 then return nil end
  STICKY.left = true
  return math.ceil(ready / (others + 1))
end

--- Where ready jobs stand beside the lists; of one consumer: what it takes from. `how` = {ranked=, mine=}: it takes now,
--- from `heads` at the most `most` jobs, and only what it owns where others go before it, as `outranked` says; of the
--- consumer that this call is about, if there is one.
local function sticky_heads(base, consumer, how)
  local name = consumer and consumer.name or how and how.mine and STICKY.mine
  local heads = { base .. 'heads', lists = true }
  if not name then
    for _, owner in ipairs(sticky_consumers(base)) do heads[#heads + 1] = sticky_key(base, owner) end
    return heads
  end
  if consumer and how then
    -- what `taken` writes is met here, where nothing is changed yet
    redis.call('HLEN', base .. 'owners')
    if how.ranked and sticky_outranked(base, consumer) then
      heads = { lists = false, outranked = true }
    else
      heads.most = sticky_share(base, name)
    end
  end
  heads[#heads + 1] = sticky_key(base, name)
  return heads
end

--- The key of the set in which a ready job stands; nil: in none.
local function sticky_stands(base, job)
  local bucket = sticky_bucket(job)
  local key = bucket and sticky_stall(base, bucket)
  return key and redis.call('ZSCORE', key, schedule_member(job, job.id)) and key
end

local function sticky_places(_, found)
  found[#found + 1] = { 'owners', 'hash' }
  return found
end

--- Those of its keys that have names.
local function sticky_keys(base, found)
  for _, owner in ipairs(sticky_consumers(base)) do found[#found + 1] = { 'own:' .. owner, 'zset' } end
  return found
end

--- What a step about jobs with these values, or tags, may meet: into `found`.
local function sticky_meets(values, found, base)
  local buckets, seen = {}, {}
  for _, value in ipairs(values) do
    local bucket = sticky_bucket_of(value)
    if bucket and not seen[bucket] then
      seen[bucket] = true
      buckets[#buckets + 1] = bucket
    end
  end
  if #buckets == 0 then return found end
  found[#found + 1] = { 'owners', 'hash' }
  if redis.call('TYPE', base .. 'owners').ok ~= 'hash' then return found end
  for _, owner in ipairs(redis.call('HMGET', base .. 'owners', unpack(buckets))) do
    if owner and not seen[owner] then
      seen[owner] = true
      found[#found + 1] = { 'own:' .. owner, 'zset' }
    end
  end
  return found
end

--- What follows is about the work of this consumer; false: of all.
local function sticky_audience(_, consumer)
  STICKY.mine = consumer or nil
end

--- The consumers that are notified first: into `names`. The keys that are looked at then are met here, before anything
--- is written, where they are of another type.
local function sticky_waiters(base, names)
  --- @include "order/lists_count"
  lists_count(base)
  redis.call('ZCARD', base .. 'heads')
  for _, owner in ipairs(sticky_consumers(base)) do
    redis.call('EXISTS', sticky_key(base, owner))
    names[#names + 1] = owner
  end
  for _, name in ipairs(redis.call('ZRANGE', base .. 'interested', '0', WAKE_LAST)) do names[#names + 1] = name end
end

--- What a consumer owned is nobody's; nil: what any owned. Answers how many jobs of it are ready.
local function sticky_free(base, consumer)
  local flat, buckets, names, moved = redis.call('HGETALL', base .. 'owners'), {}, {}, 0
  for i = 1, #flat, 2 do
    if not consumer or flat[i + 1] == consumer then
      buckets[#buckets + 1] = flat[i]
      names[flat[i + 1]] = true
    end
  end
  if consumer then names[consumer] = true end
  for name in pairs(names) do
    local key = sticky_key(base, name)
    local ready = redis.call('ZRANGE', key, '0', '-1', 'WITHSCORES')
    for from = 1, #ready, 2 * STICKY_CHUNK do
      local some = {}
      for i = from, math.min(#ready, from + 2 * STICKY_CHUNK - 1), 2 do
        some[#some + 1], some[#some + 2] = ready[i + 1], ready[i]
      end
      redis.call('ZADD', base .. 'heads', unpack(some))
    end
    redis.call('DEL', key)
    moved = moved + #ready / 2
  end
  for from = 1, #buckets, STICKY_CHUNK do
    redis.call('HDEL', base .. 'owners', unpack(buckets, from, math.min(#buckets, from + STICKY_CHUNK - 1)))
  end
  STICKY.common = STICKY.common + moved
  return moved
end
