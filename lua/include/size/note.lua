--- @include "queue/count"
--- @include "size/again"

--- How large jobs are: `sizes`, id -> bytes of its envelope, of each job that a limit in bytes counts; field
--- `waiting_bytes` of `meta` is their sum. It moves by what is written into `sizes`, so a step may say the same twice.

--- These jobs, {id, value, ...}, count from now on, each as large as its value says.
local function size_note(base, stored)
  local ids, found, fresh, more, again = {}, string.find, {}, 0, 0
  for i = 1, #stored, 2 do ids[#ids + 1] = stored[i] end
  if #ids == 0 then return end
  local anew = redis.call('HEXISTS', base .. 'meta', 'recounted') == 1
  for i, known in ipairs(redis.call('HMGET', base .. 'sizes', unpack(ids))) do
    local value, before = stored[2 * i], tonumber(known)
    local size = #value - (found(value, ';', 1, true) or 0)
    if before ~= size then
      fresh[#fresh + 1] = ids[i]
      fresh[#fresh + 1] = string.format(anew and '0%d' or '%d', size)
      more = more + size - (before or 0)
      again = again + size - (size_again(known) and before or 0)
    end
  end
  if #fresh == 0 then return end
  redis.call('HSET', base .. 'sizes', unpack(fresh))
  if more ~= 0 then count_up(base .. 'meta', 'waiting_bytes', string.format('%d', more)) end
  if anew and again ~= 0 then count_up(base .. 'meta', 'recounted', string.format('%d', again)) end
end
