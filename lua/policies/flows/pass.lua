--- @hooks awaits
--- @include "flow/ends"
--- @include "result/read"

--- These jobs ({id=, tags=, again=}) are gone for good, unless they are to come `again`: none of them is done. Their
--- records are there.
local function flows_pass(base, queue, jobs)
  if #jobs == 0 or redis.call('EXISTS', base .. 'deferred', base .. 'edges') == 0 then return end
  local ends = {}
  for _, job in ipairs(jobs) do
    if not job.again then ends[#ends + 1] = FLOWS.ended(job.id, job.tags, result_read(base, job.id), false) end
  end
  FLOWS.tell(base, queue, ends)
end
