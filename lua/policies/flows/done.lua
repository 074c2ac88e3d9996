--- @hooks awaits

--- These jobs are done, and their values are about to go. `said`, `arguments`: of the settle.
local function flows_done(base, queue, gone, said, arguments)
  if redis.call('EXISTS', base .. 'deferred', base .. 'edges') == 0 then return end
  local results, ends = {}, {}
  for i = 1, said.done do
    local at = said.results + 3 * (i - 1)
    results[arguments[at]] = arguments[at + 2]
  end
  for i, value in ipairs(redis.call('HMGET', base .. 'jobs', unpack(gone))) do
    if value then
      ends[#ends + 1] = { id = gone[i], tags = value, ok = true, result = results[gone[i]] or '', state = 'done' }
    end
  end
  FLOWS.tell(base, queue, ends)
end
