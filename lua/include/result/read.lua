--- What an id became.

--- The record of an ended job, or false.
local function result_read(base, id)
  return redis.call('HGET', base .. 'ended', id) or redis.call('HGET', base .. 'ended:old', id)
end
