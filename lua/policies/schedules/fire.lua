--- @include "tick/record"
--- @include "tick/due"
--- @include "tick/put"
--- @include "tick/declared"
--- @include "tick/attended"

--- What `fires` found is done: ticks that are due, and those that waited for the end of the job before, are put into
--- `scheduled`, whence they become ready as any job that is due. All keys that this meets were looked at.
local function schedules_fire(base, queue, found)
  --- @if closed
  do return end
  --- @end
  -- first write: frees (README)
  redis.call('HDEL', base .. 'meta', 'oom')
  local present = attended_since(base, queue.now) or queue.now
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
  local all = {}
  for place, name in ipairs(found.due) do
    local record = found.records[name]
    if not record or record.state ~= 'active' or #record.nexts == 0 then
      -- the doctor says so
      redis.call('ZREM', base .. 'ticks', name)
      found.records[name] = false
    else
      local over = false
      if record.code then
        local _
        _, over = declared_by(base, queue.now, name, record.app)
      end
      if over then
        record.state, record.owed = 'retired', nil
      else
        for _, tick in ipairs(due_ticks(record, queue.now, present)) do
          all[#all + 1] = { tick = tick, place = place, name = name, record = record }
        end
      end
    end
  end
  -- jobs of several schedules stand in the order of their ticks
  table.sort(all, function(a, b)
    if a.tick ~= b.tick then return a.tick < b.tick end
    return a.place < b.place
  end)
  for _, one in ipairs(all) do
    local record = one.record
    if record.overlap == 'allow' or not put_lives(base, record.last_id) then
      put_tick(base, queue, one.name, record, one.tick)
    elseif record.overlap == 'queue' then
      if record.owed then record.skipped = record.skipped + 1 end
      record.owed = one.tick
    else
      record.skipped = record.skipped + 1
    end
  end
  for _, name in ipairs(found.due) do
    if found.records[name] then record_write(base, name, found.records[name]) end
  end
end
