--- Look at a page of one place for jobs, with what else the queue says of each: for who checks a live server.
--- KEYS: meta, guard
--- ARGV: which, start, stop
---   which: ready:<level> | due:<level> | scheduled | dead | heads | group:<group> | class:<n> | refused:<terms> | own:<consumer> |
---   held:<consumer>; start, stop: indexes, at most 500 apart
--- REPLY: {now, size of the place, member, head, score, bytes, notes, ...}
---   head: what stands before the envelope (40 bytes of what has no header), the whole mark, or "" where there is no
---   job
---   score: "" in a list; bytes: of the value; notes: letters: d it is dead, c has a cause, s is scheduled as its value
---   says, r has a record, h has a header
--- ERRORS: BADARGS | SCHEMA
--- @include "queue/open"
--- @include "job/head"
--- @include "job/value"
--- @include "order/member"

local meta = KEYS[1]
local which = ARGV[1]
local start = ARGV[2]
local stop = ARGV[3]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
start, stop = tonumber(start), tonumber(stop)
local kind = string.match(which, '^(%a+)')
if not start or not stop or stop - start > 500
  or not (which == 'scheduled' or which == 'dead' or kind == 'heads' or kind == 'group'
    or kind == 'class' or kind == 'refused' or kind == 'own' or string.match(which, '^ready:') or string.match(which, '^due:') or string.match(which, '^held:')) then
  return redis.error_reply('BADARGS check_page: a place for jobs, and at most 500 of them')
end

local key = base .. which
local members, scores, size = {}, {}, 0
local prefixed = kind == 'scheduled' or kind == 'heads' or kind == 'group' or kind == 'class' or kind == 'refused'
  or kind == 'own'
if prefixed or kind == 'dead' then
  local page = redis.call('ZRANGE', key, start, stop, 'WITHSCORES')
  for i = 1, #page, 2 do
    members[#members + 1] = page[i]
    scores[#scores + 1] = page[i + 1]
  end
  size = redis.call('ZCARD', key)
else
  members = redis.call('LRANGE', key, start, stop)
  size = redis.call('LLEN', key)
end
local ids = {}
for i, member in ipairs(members) do ids[i] = prefixed and member_id(member) or member end
local out = { queue.now, size }
if #ids == 0 then return out end

-- in bulk, and only where there is something: a page is looked at in a millisecond
local function fields(name)
  return redis.call('EXISTS', base .. name) == 1 and redis.call('HMGET', base .. name, unpack(ids)) or {}
end
local values, causes = redis.call('HMGET', base .. 'jobs', unpack(ids)), kind == 'dead' and fields('causes') or {}
local ended, older = fields('ended'), fields('ended:old')
local dead = redis.call('EXISTS', base .. 'dead') == 1 and redis.call('ZMSCORE', base .. 'dead', unpack(ids)) or {}
local heads, scheduled_as = {}, {}
for i, id in ipairs(ids) do
  local value = values[i]
  heads[i] = value and head_of(value)
  local job = heads[i] and value_parse(heads[i] .. ';')
  if job and job.damaged then heads[i], job = nil, nil end
  scheduled_as[i] = job and schedule_member(job, id) or ''
end
local scheduled = redis.call('EXISTS', base .. 'scheduled') == 1
  and redis.call('ZMSCORE', base .. 'scheduled', unpack(scheduled_as)) or {}
for i, id in ipairs(ids) do
  local value, notes = values[i], heads[i] and 'h' or ''
  if scheduled[i] then notes = notes .. 's' end
  if dead[i] then notes = notes .. 'd' end
  if causes[i] then notes = notes .. 'c' end
  if ended[i] or older[i] then notes = notes .. 'r' end
  out[#out + 1] = members[i]
  out[#out + 1] = heads[i] or (value and string.sub(value, 1, 40)) or ''
  out[#out + 1] = scores[i] or ''
  out[#out + 1] = value and #value or 0
  out[#out + 1] = notes
end
return out
