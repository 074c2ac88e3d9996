--- @include "job/value"
--- @include "order/score"
--- @include "schedule/member"
--- @hooks tell

--- This bucket is nobody's from now on; nil: all of this consumer. A ready job of it that stands with an owner, its own
--- or another one, is anybody's.
local function sticky_reset(base, queue, bucket, consumer)
  local moved = not bucket and sticky_free(base, consumer) or 0
  local turn
  if bucket then
    --- @each turn = turn(base, bucket)
  end
  local value = turn and redis.call('HGET', base .. 'jobs', turn)
  local job = value and string.byte(value) ~= 33 and value_parse(value)
  local member = job and schedule_member(job, turn)
  for _, name in ipairs(member and sticky_consumers(base) or {}) do
    moved = moved + redis.call('ZREM', sticky_key(base, name), member)
  end
  if bucket then redis.call('HDEL', base .. 'owners', bucket) end
  if member and moved > 0 then
    local score = job.due > 0 and string.format('%d', score_of(job.level, job.due)) or score_text(member)
    sticky_expose(base, { bucket }, { score, member })
  end
  if moved > 0 and not queue.paused then sticky_tell(base, queue.now, 0, queue.timer, queue.ranked) end
end
