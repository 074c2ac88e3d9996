--- Jobs may come to the front: when such a job becomes ready, it stands before all that waits in its level, so that of
--- several the last one goes first. A queue may do so with all its jobs: last in, first out (A-17).
--- HOOKS: defaults, admit, marked, shelf, meets, options, ripen
--- META: lifo
--- JOB: tags (f: the level that it was enqueued for; it is to come to the front)
--- KEYS: none
--- STORE: list
--- ORDER: 72
--- FAST: yes
--- STRUCTURE: none
--- EXCLUDES: hold, last_value, ring, limits, groups, selectors, refusals, sorted, shard, shares
--- @include "order/due"

--- Such a job stands in the list of those that were due, as one that was due before all of them. From then on it is as
--- any other one there, and has no tag.

--- Whether a queue's jobs come to the front that say nothing of it.
local function front_lifo(base)
  return redis.call('HGET', base .. 'meta', 'lifo') == '1'
end

--- Whether a job that says nothing of itself has terms all the same. `said`: whether its terms are special already.
local function front_defaults(base, said)
  return said or front_lifo(base)
end

--- `run`: of an enqueue.
local function front_admit(queue, run)
  local rest, asked = string.gsub(run.more, '|f', '', 1)
  run.more = rest
  if queue.lifo == nil then queue.lifo = front_lifo(queue.base) end
  if asked == 0 and not queue.lifo then return end
  run.tags, run.placed = run.tags .. '|f' .. run.level, true
end

--- A job is delivered directly, since nothing waits: what it comes back to is its place among the later ones.
local function front_marked(_, _, value)
  return (string.gsub(value, '^([^;]*)|f%d', '%1', 1))
end

--- What a step that makes jobs with these values, or tags, ready may meet: into `found`.
local function front_meets(values, found)
  local seen = {}
  for _, value in ipairs(values) do
    local level = value and string.match(value, '^[^;]-|f(%d)')
    if level and not seen[level] then
      seen[level] = true
      found[#found + 1] = { due_list(level), 'list' }
    end
  end
  if next(seen) then found[#found + 1] = { 'scheduled', 'zset' } end
  return found
end

--- What may be configured, into `limits`.
local function front_options(_, limits)
  limits.lifo = { 0, 1 }
end
