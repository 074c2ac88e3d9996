--- @include "tick/record"
--- @include "tick/due"
--- @include "tick/put"
--- @include "tick/declared"

--- What `fires` found is done: ticks that are due, and those that waited for the end of the job before, are put into
--- `scheduled`, whence they become ready as any job that is due. All keys that this meets were looked at.
local function schedules_fire(base, queue, found)
  --- @if closed
  do return end
  --- @end
  -- first write: frees (README)
  redis.call('HDEL', base .. 'meta', 'oom')
  local present = queue.now
  local looked, lease = string.match(redis.call('HGET', base .. 'meta', 'looked') or '', '^(%d+),(%d+)$')
  if looked and queue.now - looked <= tonumber(lease) then present = tonumber(looked) end
  for _, name in ipairs(found.owing) do
    local record = found.records[name]
    if not record or not record.owed then
      redis.call('HDEL', base .. 'owed', name)
    elseif not put_lives(base, record.last_id) then
      local tick = record.owed
      record.owed = nil
      put_tick(base, queue, name, record, tick)
      record_write(base, name, record)
    end
  end
  for _, name in ipairs(found.due) do
    local record = found.records[name]
    if not record or record.state ~= 'active' or #record.nexts == 0 then
      -- the doctor says so
      redis.call('ZREM', base .. 'ticks', name)
    else
      local ticks, over = {}, false
      if record.code then
        local _
        _, over = declared_by(base, queue.now, name, record.app)
      end
      if over then
        record.state, record.owed = 'retired', nil
      else
        ticks = due_ticks(record, queue.now, present)
      end
      for _, tick in ipairs(ticks) do
        if record.overlap == 'allow' or not put_lives(base, record.last_id) then
          put_tick(base, queue, name, record, tick)
        elseif record.overlap == 'queue' then
          if record.owed then record.skipped = record.skipped + 1 end
          record.owed = tick
        else
          record.skipped = record.skipped + 1
        end
      end
      record_write(base, name, record)
    end
  end
end
