--- @include "queue/count"

--- How large jobs are: `sizes`, id -> bytes of its envelope, of each job that a limit in bytes counts; field
--- `waiting_bytes` of `meta` is their sum. It moves by what is written into `sizes`, so a step may say the same twice.

--- These jobs, {id, value, ...}, count from now on, each as large as its value says.
local function size_note(base, stored)
  local ids, found, fresh, more = {}, string.find, {}, 0
  for i = 1, #stored, 2 do ids[#ids + 1] = stored[i] end
  if #ids == 0 then return end
  for i, known in ipairs(redis.call('HMGET', base .. 'sizes', unpack(ids))) do
    local value = stored[2 * i]
    local size = #value - (found(value, ';', 1, true) or 0)
    if known ~= string.format('%d', size) then
      fresh[#fresh + 1] = ids[i]
      fresh[#fresh + 1] = string.format('%d', size)
      more = more + size - (tonumber(known) or 0)
    end
  end
  if #fresh == 0 then return end
  redis.call('HSET', base .. 'sizes', unpack(fresh))
  if more ~= 0 then count_up(base .. 'meta', 'waiting_bytes', string.format('%d', more)) end
end
