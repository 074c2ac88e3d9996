--- Jobs name shares, and shares take turns: of what is delivered in a level each share that has ready jobs gets its part,
--- by weight, whatever the others have waiting. In a share a job keeps its place. One that has nothing ready saves nothing
--- up, and its part is the others'.
--- HOOKS: admit, shelf, strand, deal, undeal, refund, closing, unblock, heads, stands, preceding, foremost, fewer, cleared,
---   counted, apportion, places, meets, found, repair, ripen
--- META: blocked
--- JOB: tags (e: the share, escaped)
--- KEYS: heads, strands, lined, turns, weights, blocked, served:<level>, group:<strand>
--- STORE: list
--- ORDER: 44
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: groups, selectors, last_value, lifetime, ring, hold, sorted, refusals, flows, front, shard
--- @include "job/value"
--- @include "order/lists"
--- @include "order/score"
--- @include "queue/count"
--- @include "schedule/member"

--- A strand is what a share has in one level: "<level>.<share>". `heads`: of each strand with ready jobs the first one: a member
--- as of `scheduled`, by the level and its start tag, as a score of `order/score` would have it. `strands`: strand -> the score
--- by which that job stands in its strand, 15 digits, and its member. `group:<strand>`: those behind it, by `score_of`; how many
--- these are in all is in `blocked`, and by level in `lined`; the strands that have some are those of `blocked`. `turns`:
--- level -> the start tag of the job that was delivered last. `served:<level>`: strands without ready jobs -> their finish
--- tags, where these are not past; the lists, which hold the jobs of no share, are the strand "<level>". `weights`: share ->
--- weight, "*" -> that of all others.
--- This is start-time fair queueing: a strand that gets its first job starts at the virtual time of its level, or at its own
--- finish tag where that is later, and each delivery moves it on by what a job costs: the heavier, the less.

--- What a delivery costs a share of weight 1; that of weight n pays so much in n deliveries.
local SHARES_UNIT = 1000

--- The last tag: what lies behind it would be of another level.
local SHARES_LAST = SCORE_LEVEL - 1

--- Digits before the member in `strands`.
local SHARES_DIGITS = 15

--- The share in a stored value.
local SHARES_STORED = '^[^;]-|e([^|;]*)'

--- Of this call: the weights that are known.
local SHARES = { weights = {} }

local function shares_name(tags)
  return tags and string.match(tags, '|e([^|]*)')
end

local function shares_strand_of(level, name)
  return string.format('%d.%s', level, name or '')
end

--- Whether a job stands in a strand while it is ready. What names limits does, too: those that have no permit are kept out by
--- these, and all others would stand in the lists.
local function shares_takes(job)
  local tags = job.tags
  return tags ~= nil and (string.find(tags, '|e', 1, true) or string.find(tags, '|l', 1, true)) ~= nil
end

--- The virtual time of a level; nil where nobody waits there in turns.
local function shares_time(base, level)
  local time = redis.call('HGET', base .. 'turns', level)
  return time and (tonumber(time) or 0)
end

--- Read the weights of these shares that are not known yet.
local function shares_weights(base, names)
  local weights = SHARES.weights
  if SHARES.set == nil then
    SHARES.set = redis.call('EXISTS', base .. 'weights') == 1
    SHARES.default = SHARES.set and tonumber(redis.call('HGET', base .. 'weights', '*')) or 1
  end
  if not SHARES.set then return end
  local ask = {}
  for _, name in ipairs(names) do
    if not weights[name] then
      weights[name] = SHARES.default
      ask[#ask + 1] = name
    end
  end
  if #ask == 0 then return end
  for i, weight in ipairs(redis.call('HMGET', base .. 'weights', unpack(ask))) do
    weights[ask[i]] = tonumber(weight) or SHARES.default
  end
end

--- The tag behind one delivery. In each unit a share of weight n has n places: rounding adds nothing up.
local function shares_after(tag, name)
  local weight = SHARES.weights[name] or SHARES.default
  local unit = math.floor(tag / SHARES_UNIT)
  local done = math.floor((tag - unit * SHARES_UNIT) * weight / SHARES_UNIT)
  return math.min(SHARES_LAST, unit * SHARES_UNIT + math.ceil((done + 1) * SHARES_UNIT / weight))
end

--- The score of the head of a strand, as text.
local function shares_score(level, tag)
  return string.format('%d', (9 - level) * SCORE_LEVEL + tag)
end

--- Where a job stands in its strand.
local function shares_entry(job)
  return { at = score_of(job.level, job.due, job.position), position = job.position,
    member = schedule_member(job, job.id) }
end

--- The same of the first one, as `strands` says it.
local function shares_first(said)
  local member = string.sub(said, SHARES_DIGITS + 1)
  return { at = tonumber(string.sub(said, 1, SHARES_DIGITS)) or 0,
    position = tonumber(string.sub(member, 3, MEMBER_PREFIX)) or 0, member = member }
end

local function shares_said(at, member)
  return string.format('%015d', at) .. member
end

local function shares_earlier(one, other)
  if one.at ~= other.at then return one.at < other.at end
  return one.position < other.position
end

--- So many more stand behind the heads of strands of this level.
local function shares_line(base, level, count)
  if count == 0 then return end
  local field = string.format('%d', level)
  if count_up(base .. 'lined', field, count) == 0 then redis.call('HDEL', base .. 'lined', field) end
  count_up(base .. 'meta', 'blocked', count)
end

--- These strands have given something away: what is empty has no one behind its head any more.
local function shares_emptied(base, strands)
  local keys = {}
  for i, strand in ipairs(strands) do keys[i] = base .. 'group:' .. strand end
  if #keys == 0 or redis.call('EXISTS', unpack(keys)) == #keys then return end
  for i, strand in ipairs(strands) do
    if redis.call('EXISTS', keys[i]) == 0 then redis.call('ZREM', base .. 'blocked', strand) end
  end
end

--- The next one of a strand becomes its head, at this score; where there is none, the strand has no ready job any more.
--- True where there is one.
local function shares_next(base, level, strand, score)
  local some = redis.call('ZPOPMIN', base .. 'group:' .. strand)
  if not some[1] then
    redis.call('HDEL', base .. 'strands', strand)
    return false
  end
  redis.call('ZADD', base .. 'heads', score, some[1])
  redis.call('HSET', base .. 'strands', strand, shares_said(tonumber(some[2]), some[1]))
  shares_emptied(base, { strand })
  shares_line(base, level, -1)
  return true
end

--- No strand has a ready job: what was before counts no more.
local function shares_rest(base)
  for _, level in ipairs(redis.call('HKEYS', base .. 'turns')) do redis.call('UNLINK', base .. 'served:' .. level) end
  redis.call('DEL', base .. 'turns')
end

--- The start tags of strands that get their first jobs: strand -> tag. `strands`: of one level.
local function shares_starts(base, level, strands)
  local starts, served = {}, {}
  local time = shares_time(base, string.format('%d', level))
  if time then served = redis.call('ZMSCORE', base .. 'served:' .. level, unpack(strands)) end
  local begun = {}
  for i, strand in ipairs(strands) do
    starts[strand] = math.max(time or 0, tonumber(served[i] or nil) or 0)
    if served[i] then begun[#begun + 1] = strand end
  end
  if #begun > 0 then redis.call('ZREM', base .. 'served:' .. level, unpack(begun)) end
  return starts
end

--- These jobs ({id=, level=, position=, due=, tags=, ...}) are ready from now on, each in its strand: also what another
--- policy kept back until now.
local function shares_strand(base, jobs)
  if #jobs == 0 then return end
  local strands, entries, heads, begin = {}, {}, {}, {}
  for _, job in ipairs(jobs) do
    local strand = shares_strand_of(job.level, shares_name(job.tags))
    if not entries[strand] then
      entries[strand] = { level = job.level }
      strands[#strands + 1] = strand
    end
    table.insert(entries[strand], shares_entry(job))
  end
  local firsts = redis.call('HMGET', base .. 'strands', unpack(strands))
  for i, strand in ipairs(strands) do
    if firsts[i] then
      entries[strand].first = shares_first(firsts[i])
      heads[#heads + 1] = entries[strand].first.member
    end
  end
  local scores, at = #heads > 0 and redis.call('ZMSCORE', base .. 'heads', unpack(heads)) or {}, 0
  for _, strand in ipairs(strands) do
    local its = entries[strand]
    if its.first then
      at = at + 1
      its.score, its.lost = scores[at], not scores[at]
    end
    if not its.score then
      begin[its.level] = begin[its.level] or {}
      table.insert(begin[its.level], strand)
    end
  end
  for level, some in pairs(begin) do
    for strand, tag in pairs(shares_starts(base, level, some)) do entries[strand].score = shares_score(level, tag) end
  end
  local open, said, gone, behind, lined = {}, {}, {}, {}, {}
  for _, strand in ipairs(strands) do
    local its, from = entries[strand], 1
    if #its > 1 then table.sort(its, shares_earlier) end
    if not its.lost and (not its.first or shares_earlier(its[1], its.first)) then
      from = 2
      open[#open + 1] = its.score
      open[#open + 1] = its[1].member
      said[#said + 1] = strand
      said[#said + 1] = shares_said(its[1].at, its[1].member)
      if its.first then
        -- an earlier one is back: it takes the turn of the one that was first, which is next
        gone[#gone + 1] = its.first.member
        its[#its + 1] = its.first
      end
    end
    local members = {}
    for i = from, #its do
      members[#members + 1] = string.format('%d', its[i].at)
      members[#members + 1] = its[i].member
    end
    if #members > 0 then
      redis.call('ZADD', base .. 'group:' .. strand, unpack(members))
      behind[#behind + 1] = '0'
      behind[#behind + 1] = strand
      lined[its.level] = (lined[its.level] or 0) + #members / 2
    end
  end
  if #gone > 0 then redis.call('ZREM', base .. 'heads', unpack(gone)) end
  if #open > 0 then
    redis.call('ZADD', base .. 'heads', unpack(open))
    redis.call('HSET', base .. 'strands', unpack(said))
  end
  if #behind > 0 then redis.call('ZADD', base .. 'blocked', unpack(behind)) end
  for level, count in pairs(lined) do shares_line(base, level, count) end
  for _, strand in ipairs(strands) do
    -- the head that it is said to have stands nowhere: who is first now gets the turn
    if entries[strand].lost then shares_next(base, entries[strand].level, strand, entries[strand].score) end
  end
end

--- `run`: of an enqueue.
local function shares_admit(_, run)
  local name = string.match(run.more, '|e([^|~]*)')
  if not name then return end
  if name == '' or #name > 384 or string.find(name, '[^%w%%_-]') then
    return redis.error_reply('BADARGS enqueue: a share that is empty, too long or not escaped')
  end
  run.tags, run.placed = run.tags .. '|e' .. name, true
  run.more = string.gsub(run.more, '|e[^|~]*', '', 1)
end

--- These jobs are to be ready: new, due, or back from a consumer. Those of shares go to their strands; the others are
--- returned, and so are those that name limits, which give them to `strand` once they have their permits.
local function shares_shelf(base, _, jobs)
  local mine, rest = {}, {}
  for _, job in ipairs(jobs) do
    local here = shares_takes(job) and not string.find(job.tags, '|l', 1, true)
    table.insert(here and mine or rest, job)
  end
  if #mine == 0 then return jobs end
  shares_strand(base, mine)
  return rest
end

--- A job that waits leaves: out of its place, and the next one of its strand has its turn. Answers `ready`; nil where it does
--- not stand here.
local function shares_unblock(base, _, job)
  if not shares_takes(job) then
    -- it stands in a list, and where no strand has a ready job there are no turns; nobody has looked at these keys
    if redis.call('EXISTS', base .. 'heads') == 0 and type(redis.pcall('HLEN', base .. 'turns')) == 'number' then
      shares_rest(base)
    end
    return nil
  end
  local member, strand = schedule_member(job, job.id), shares_strand_of(job.level, shares_name(job.tags))
  local score = redis.call('ZSCORE', base .. 'heads', member)
  if not score then
    if redis.call('ZREM', base .. 'group:' .. strand, member) == 0 then return nil end
    shares_emptied(base, { strand })
    shares_line(base, job.level, -1)
    return 'ready'
  end
  redis.call('ZREM', base .. 'heads', member)
  local said = redis.call('HGET', base .. 'strands', strand)
  -- where another one is the head of this strand, that keeps its turn
  if not said or string.sub(said, SHARES_DIGITS + 1) ~= member then return 'ready' end
  if not shares_next(base, job.level, strand, score) then
    local level = string.format('%d', job.level)
    local tag, time = tonumber(score) - (9 - job.level) * SCORE_LEVEL, shares_time(base, level)
    -- who empties its share pays for what it had all the same
    if time and tag > time then redis.call('ZADD', base .. 'served:' .. level, string.format('%d', tag), strand) end
    if redis.call('EXISTS', base .. 'heads') == 0 then shares_rest(base) end
  end
  return 'ready'
end

--- Nothing can fail any more: levels whose strands are all empty are at rest, in others those go whose finish tags are past.
local function shares_closing(base, queue)
  for level, dealt in pairs(queue.dealt or {}) do
    local served = base .. 'served:' .. level
    if dealt.rest then
      redis.call('HDEL', base .. 'turns', level)
      redis.call('UNLINK', served)
    else
      local past = redis.call('ZRANGEBYSCORE', served, '-inf', string.format('%d', dealt.time), 'LIMIT', '0',
        string.format('%d', 2 * dealt.count + 16))
      if #past > 0 then redis.call('ZREM', served, unpack(past)) end
    end
  end
end

--- Where ready jobs stand beside the lists.
local function shares_heads(base)
  return { base .. 'heads', lists = true }
end

--- The one of the places in which a ready job stands; nil: in none.
local function shares_stands(base, job)
  if not shares_takes(job) then return nil end
  local member, behind = schedule_member(job, job.id), base .. 'group:' .. shares_strand_of(job.level, shares_name(job.tags))
  return redis.call('ZSCORE', base .. 'heads', member) and base .. 'heads'
    or redis.call('ZSCORE', behind, member) and behind
end

--- How many of its share stand before a ready job; nil where it is in no strand.
local function shares_preceding(base, job)
  if not shares_takes(job) then return nil end
  local member = schedule_member(job, job.id)
  if redis.call('ZSCORE', base .. 'heads', member) then return 0 end
  local rank = redis.call('ZRANK', base .. 'group:' .. shares_strand_of(job.level, shares_name(job.tags)), member)
  return rank and rank + 1
end

--- The due time that brings a job, which has left its place, to the front of its strand: `due`, or one before that of the
--- first job there.
local function shares_foremost(base, job, due)
  local said = shares_takes(job) and redis.call('HGET', base .. 'strands', shares_strand_of(job.level, shares_name(job.tags)))
  local first = said and shares_first(said).at - (9 - job.level) * SCORE_LEVEL
  return first and first < SCORE_READY and math.min(due, math.max(1, first - 1)) or due
end

local function shares_places(levels, found)
  for _, key in ipairs({ 'strands', 'lined', 'turns', 'weights' }) do found[#found + 1] = { key, 'hash' } end
  for _, key in ipairs({ 'heads', 'blocked' }) do found[#found + 1] = { key, 'zset' } end
  for level in string.gmatch(levels or '', '%d+') do found[#found + 1] = { 'served:' .. level, 'zset' } end
  return found
end

--- What a step about jobs with these values, or tags, may meet: into `found`.
local function shares_meets(values, found, base)
  local seen, any, levels = {}, false, nil
  for _, value in ipairs(values) do
    local tags = value and string.match(value, '^[%d,-]*(|[^;]*)')
    if tags and shares_takes({ tags = tags }) then
      any = true
      local name = shares_name(tags) or ''
      levels = levels or lists_levels(base)
      for level in string.gmatch(not seen[name] and levels or '', '%d+') do
        found[#found + 1] = { 'group:' .. shares_strand_of(level, name), 'zset' }
      end
      seen[name] = true
    end
  end
  return any and shares_places(levels, found) or found
end
