--- A schedule as it is stored, a JSON object. Of its client: `terms`, `job` (terms and envelope of an enqueue), `missed`
--- (last, skip, all), `overlap` (allow, skip, queue), `jitter`, `window`, `grace` (ms), `every` (ms between ticks, or
--- nothing: they are known ahead), and what no script looks at. Of the scripts: `version` (another one after each change),
--- `state` (active, paused,
--- retired), `nexts` (ticks to come, ms; with `every` one), `signed` (tick as text -> what stands before its
--- envelope), `after` (what became of the ticks up to this one is
--- decided), `last`, `last_id` (tick and id of the last job), `fired`, `skipped`, `left_out`, `conflicts` (numbers
--- of ticks: the last of those whose unique key another job had), `behind` (those left out since the last job), `owed` (a tick that waits for the end of the job before). Of one
--- that code declares: `code` (hash of what it says), `app`, `seen` (such hashes, in the order of their coming), `declared`
--- (its text), `edited` (people changed it since).

--- Fewer ticks than that, or none known for so many ms from the next one on: more are to be computed.
local RECORD_FEW, RECORD_SOON = 4, 450000

--- Numbers that scripts count with.
local RECORD_NUMBERS = { 'version', 'fired', 'skipped', 'left_out', 'behind', 'conflicts', 'jitter', 'window', 'grace' }

--- What may stand there otherwise.
local RECORD_WORDS = {
  missed = { last = true, skip = true, all = true },
  overlap = { allow = true, skip = true, queue = true },
  state = { active = true, paused = true, retired = true },
}

--- The longest times, ms: a thousand years after 1970; ten years.
local RECORD_LAST, RECORD_LONGEST = 31556952000000, 315360000000

--- Ticks that are known ahead, at the most.
local RECORD_MOST = 2000

--- Whether these are instants that follow each other.
local function record_rising(ticks)
  local before = 0
  for i, tick in ipairs(ticks) do
    if type(tick) ~= 'number' or tick <= before or tick > RECORD_LAST or tick ~= math.floor(tick) or i > RECORD_MOST then
      return false
    end
    before = tick
  end
  return true
end

--- A schedule of its text; nil where that is none.
local function record_parse(text)
  local readable, record = pcall(cjson.decode, text or '')
  if not readable or type(record) ~= 'table' or type(record.nexts) ~= 'table' or type(record.terms) ~= 'string'
    or type(record.job) ~= 'string' or not record_rising(record.nexts) then
    return nil
  end
  for _, field in ipairs(RECORD_NUMBERS) do
    local number = record[field] or 0
    if type(number) ~= 'number' or number < 0 or number > RECORD_LONGEST or number ~= math.floor(number) then return nil end
    record[field] = number
  end
  for field, words in pairs(RECORD_WORDS) do
    if not words[record[field]] then return nil end
  end
  if record.every ~= nil
    and (type(record.every) ~= 'number' or record.every < 1000 or record.every > RECORD_LONGEST
      or record.every ~= math.floor(record.every) or #record.nexts > 1) then
    return nil
  end
  if record.signed ~= nil and type(record.signed) ~= 'table' then return nil end
  if record.owed ~= nil and not record_rising({ record.owed }) then return nil end
  return record
end

--- The schedule of this name; nil where there is none, or it cannot be read.
local function record_read(base, name)
  return record_parse(redis.call('HGET', base .. 'schedules', name))
end

--- Store it, and note when its next tick is due and whether it lacks some.
local function record_write(base, name, record)
  record.version = record.version + 1
  redis.call('HSET', base .. 'schedules', name, cjson.encode(record))
  if record.owed then
    redis.call('HSET', base .. 'owed', name, '1')
  else
    redis.call('HDEL', base .. 'owed', name)
  end
  local active = record.state == 'active'
  local known = #record.nexts
  if active and known > 0 and not record.waits then
    redis.call('ZADD', base .. 'ticks', string.format('%d', record.nexts[1]), name)
  else
    redis.call('ZREM', base .. 'ticks', name)
  end
  local few = known < RECORD_FEW or record.nexts[known] - record.nexts[1] < RECORD_SOON or record.waits
  if active and not record.every and few then
    redis.call('SADD', base .. 'refills', name)
  else
    redis.call('SREM', base .. 'refills', name)
  end
end
