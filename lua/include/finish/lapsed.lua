--- @include "job/value"

--- A lease ends also where nobody died: Redis could not be reached, or a process was stopped. Whom its end charged, or
--- suspected, is kept for a day; where a renewal says that the consumer lives, this is taken back (X-24).

local LAPSED_MS = 86400000

--- Keep which jobs (ids) the end of this consumer's lease charged or suspected.
local function lapsed_note(base, consumer, ids)
  if #ids == 0 then return end
  redis.call('RPUSH', base .. 'lapsed:' .. consumer, unpack(ids))
  redis.call('PEXPIRE', base .. 'lapsed:' .. consumer, LAPSED_MS)
end

--- What one line of a job's errors says of the end of this consumer's lease; nil where it speaks of something else.
local function lapsed_read(line, consumer)
  if not string.find(line, '"LeaseEnded"', 1, true) then return nil end
  local read, said = pcall(cjson.decode, line)
  return read and type(said) == 'table' and said.consumer == consumer and said.type == 'LeaseEnded' and said or nil
end

--- One attempt and one crash less. The value keeps its length: the consumer that holds the job counts its bytes.
local function lapsed_uncharge(base, id, value)
  local head, rest = string.match(value, '^([^;]*)(;.*)$')
  local fields = {}
  for field in string.gmatch(head, '[^,]+') do fields[#fields + 1] = field end
  if #fields < 9 then return end
  for _, i in ipairs({ 5, 8 }) do
    fields[i] = string.format('%0' .. #fields[i] .. 'd', math.max(0, tonumber(fields[i]) - 1))
  end
  redis.call('HSET', base .. 'jobs', id, table.concat(fields, ',') .. rest)
end

--- This consumer lives: what the end of its lease said of jobs is taken back, where they are what they were. Those that
--- it was the last crash for stay dead.
local function lapsed_forgive(base, consumer)
  local ids = redis.call('LRANGE', base .. 'lapsed:' .. consumer, 0, 999)
  if #ids == 0 then return end
  redis.call('DEL', base .. 'lapsed:' .. consumer)
  local values, errors = redis.call('HMGET', base .. 'jobs', unpack(ids)), redis.call('HMGET', base .. 'errors', unpack(ids))
  for i, id in ipairs(ids) do
    local job = values[i] and string.byte(values[i]) ~= 33 and value_parse(values[i])
    if job and not job.damaged and errors[i] and not redis.call('ZSCORE', base .. 'dead', id) then
      local kept, taken = {}, nil
      for line in string.gmatch(errors[i], '[^\n]+') do
        local said = not taken and lapsed_read(line, consumer)
        if said and said.position == job.position then taken = said else kept[#kept + 1] = line end
      end
      if taken then
        if #kept > 0 then
          redis.call('HSET', base .. 'errors', id, table.concat(kept, '\n'))
        else
          redis.call('HDEL', base .. 'errors', id)
        end
        if taken.kind == 'crash' and job.crashes > 0 then lapsed_uncharge(base, id, values[i]) end
      end
    end
  end
end
