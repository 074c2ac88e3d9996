--- Look at jobs that do not wait in the ready lists, a page at a time: scheduled, dead, or held by a consumer.
--- KEYS: meta, guard
--- ARGV: which, score, member, limit
---   which: scheduled | dead | held:<consumer>; score, member: where the last page ended ("-inf" and "" at the start)
---   limit: at most 500
--- REPLY: {now, score, member, id, value, score, cause or "", ...}; the place of the call, and nothing more: the end
--- ERRORS: BADARGS | SCHEMA
--- @include "queue/open"
--- @include "schedule/member"

local meta = KEYS[1]
local which = ARGV[1]
local score = ARGV[2]
local member = ARGV[3]
local limit = ARGV[4]

local base = string.sub(meta, 1, -5)
local queue, failure = queue_open(base)
if not queue then return failure end
--- @if refers
--- @each failure = refers()
if failure then return failure end
--- @end
limit = tonumber(limit)
if not limit or limit < 1 or limit > 500
  or not (which == 'scheduled' or which == 'dead' or string.sub(which, 1, 5) == 'held:') then
  return redis.error_reply('BADARGS browse_set: scheduled, dead or held:<consumer>, and a limit from 1 to 500')
end

local key = base .. which
local start = 0
local held = string.sub(which, 1, 5) == 'held:'
if held and score ~= '-inf' then
  -- held jobs are a list in the order of acquiring: a job's score is its place in it
  start = (redis.call('LPOS', key, member) or tonumber(score) - 1) + 1
elseif score ~= '-inf' then
  local rank = redis.call('ZRANK', key, member)
  -- where the last one shown is gone, its neighbours of the same score are compared by name below
  start = rank and rank + 1 or redis.call('ZCOUNT', key, '-inf', '(' .. score)
end
local page = {}
if held then
  for i, id in ipairs(redis.call('LRANGE', key, start, start + limit - 1)) do
    page[2 * i - 1] = id
    page[2 * i] = tostring(start + i - 1)
  end
else
  page = redis.call('ZRANGE', key, start, start + limit - 1, 'WITHSCORES')
end
local ids, out = {}, {}
for i = 1, #page, 2 do
  ids[#ids + 1] = which == 'scheduled' and string.sub(page[i], MEMBER_PREFIX + 1) or page[i]
end
if #ids > 0 then
  local values = redis.call('HMGET', base .. 'jobs', unpack(ids))
  local causes = which == 'dead' and redis.call('HMGET', base .. 'causes', unpack(ids)) or {}
  for i, id in ipairs(ids) do
    local before = not held and page[2 * i] == score and page[2 * i - 1] <= member
    if values[i] and not before then
      out[#out + 1] = id
      out[#out + 1] = values[i]
      out[#out + 1] = page[2 * i]
      out[#out + 1] = causes[i] or ''
    end
  end
  score, member = page[#page], page[#page - 1]
end
return { queue.now, score, member, unpack(out) }
