--- A consumer's code declares a schedule, for as long as the consumer lives. What was first declared later counts, while a
--- living consumer declares it; a schedule that was retired is active again. What people changed stays until they reset it.
--- KEYS: meta, guard
--- ARGV: consumer, term, app, name, hash, schedule
---   app: modules that the consumer's process runs; name: "" = it declares no schedule; hash: of what the code says;
---   schedule: JSON, see include/tick/record.lua
--- REPLY: {now, word}: made, changed, or same
--- ERRORS: BADARGS | DAMAGED | GONE | SCHEMA
--- @include "queue/joined"
--- @include "queue/sound"
--- @include "queue/schema_stamp"
--- @include "consumer/open"
--- @include "tick/record"
--- @include "tick/declared"
--- @include "tick/watch"
--- @include "enqueue/batch_terms"
--- @hooks timed

local meta = KEYS[1]
local consumer = ARGV[1]
local term = ARGV[2]
local app = ARGV[3]
local name = ARGV[4]
local hash = ARGV[5]
local schedule = ARGV[6]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_joined(base)
if not queue then return failure end
local me
me, failure = consumer_open(base, consumer, term)
if not me then return failure end
if name == '' then
  -- its code declares none
  redis.call('HSET', base .. 'consumer:' .. consumer, 'app', app)
  return { queue.now, 'same' }
end
local new = record_parse(schedule)
if not new or #name > 200 or hash == '' then
  return redis.error_reply('BADARGS declare_schedule: a name, a hash and a schedule')
end
failure = sound_fault(base, queue.levels, { consumer })
if failure then return failure end
local priorities = tonumber(redis.call('HGET', meta, 'priorities')) or 10
local plan
plan, failure = batch_terms_read(new.terms .. '1', 1, { base = base, now = queue.now, priorities = priorities })
if not plan then return failure end

local known = record_read(base, name)
-- first write: frees (README)
redis.call('HDEL', meta, 'oom')
redis.call('HSET', base .. 'consumer:' .. consumer, 'schedule:' .. name, hash, 'app', app)
schema_stamp(meta)
if known and known.code == hash and known.state ~= 'retired' then return { queue.now, 'same' } end
local seen = known and type(known.seen) == 'table' and known.seen or {}
local before = false
for _, one in ipairs(seen) do before = before or one == hash end
local living = declared_by(base, queue.now, name, app)
-- an older one that starts anew does not win back while the newer one lives
if known and known.code and known.code ~= hash and before and living[known.code] then return { queue.now, 'same' } end
if not before then seen[#seen + 1] = hash end
while #seen > 4 do table.remove(seen, 1) end
local edited = known and known.edited
local record = edited and known or new
if known and not edited then
  for _, field in ipairs({ 'version', 'after', 'last', 'last_id', 'fired', 'skipped', 'left_out', 'behind', 'conflicts', 'made' }) do
    record[field] = known[field]
  end
  if known.state == 'paused' then record.state = 'paused' end
elseif edited and known.state == 'retired' then
  record.state, record.nexts, record.waits = 'active', new.nexts, nil
  record.every = record.every and new.every
end
record.made = record.made or queue.now
record.code, record.app, record.seen, record.declared, record.owed = hash, app, seen, schedule, nil
record_write(base, name, record)
tick_watch(base, queue)
return { queue.now, known and 'changed' or 'made' }
