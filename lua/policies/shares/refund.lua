--- @include "order/score"
--- @hooks strand

--- The tag before so many deliveries: a share of weight n has n places in each unit.
local function shares_before(tag, name, count)
  local weight = SHARES.weights[name] or SHARES.default
  local unit = math.floor(tag / SHARES_UNIT)
  local done = unit * weight + math.floor((tag - unit * SHARES_UNIT) * weight / SHARES_UNIT) - count
  if done <= 0 then return 0 end
  unit = math.floor(done / weight)
  return unit * SHARES_UNIT + math.ceil((done - unit * weight) * SHARES_UNIT / weight)
end

--- These jobs are back uncounted, in their places by now: their strands do not pay for those deliveries. Where jobs of a
--- strand are ready its turn comes earlier by that; else its finish tag is earlier, which counts where it is not past. No
--- tag is before the time at which a level was at rest last: what was delivered before that, or directly, nobody paid for.
local function shares_refund(base, jobs)
  if #jobs == 0 then return end
  local levels, names = {}, {}
  for _, job in ipairs(jobs) do
    local name = shares_takes(job) and (shares_name(job.tags) or '')
    local strand = name and shares_strand_of(job.level, name) or string.format('%d', job.level)
    local its = levels[job.level] or { counts = {}, names = {} }
    levels[job.level] = its
    its.counts[strand], its.names[strand] = (its.counts[strand] or 0) + 1, name or ''
    names[#names + 1] = name or ''
  end
  -- where only jobs of no share are back, nobody has looked at these keys
  if type(redis.pcall('HLEN', base .. 'weights')) ~= 'number' or type(redis.pcall('HLEN', base .. 'turns')) ~= 'number' then
    return
  end
  shares_weights(base, names)
  for level, its in pairs(levels) do
    -- a level at rest has no tags
    local served = shares_time(base, string.format('%d', level)) and base .. 'served:' .. level
    for strand, count in pairs(served and its.counts or {}) do
      local said = string.find(strand, '.', 1, true) and redis.call('HGET', base .. 'strands', strand)
      local member = said and string.sub(said, SHARES_DIGITS + 1)
      local score = member and redis.call('ZSCORE', base .. 'heads', member)
      local finish = not score and redis.pcall('ZSCORE', served, strand)
      if score then
        local tag = shares_before(tonumber(score) - (9 - level) * SCORE_LEVEL, its.names[strand], count)
        redis.call('ZADD', base .. 'heads', shares_score(level, tag), member)
      elseif type(finish) == 'string' then
        redis.call('ZADD', served, string.format('%d', shares_before(tonumber(finish), its.names[strand], count)), strand)
      end
    end
  end
end
