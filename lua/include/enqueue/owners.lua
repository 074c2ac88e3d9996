--- @hooks instead
--- @hooks replace

--- Jobs of an enqueue whose unique keys other jobs have: those are the answer, or are replaced.

--- Sets `step.uniques`, and takes the answered ones from `step.accepted`. Returns an error reply where one is refused.
local function owners_answer(step, over)
  local uniques = {
    now = step.now, over = over, timer = step.timer, paused = step.paused, index = {}, answered = {}, replaced = {},
  }
  step.uniques = uniques
  if not step.plan then return nil end
  local fault
  --- @each fault = instead(step.base, step.plan, step.ids, uniques)
  if fault then return fault end
  step.accepted = step.accepted - #uniques.answered / 3
  if not uniques.replaced[1] then return nil end
  --- @include "queue/sound"
  fault = sound_fault(step.base, step.levels)
  if fault then return fault end
  local arguments, first = step.arguments, step.first
  for _, one in ipairs(uniques.replaced) do
    if one.over then arguments[first + 2 * one.over - 1] = arguments[first + 2 * one.at - 1] end
  end
end

--- Gives jobs that are replaced what the new ones say.
local function owners_replace(step)
  if not step.uniques.replaced[1] and not step.uniques.cut then return end
  --- @each replace(step.base, step.uniques, step.arguments, step.first)
end

--- A job that came by way of an outbox is not stored because of another one: its handle exists already, so its record
--- says as which job it goes on. Nobody waits for it: its queue did not know it.
local function owners_note(step)
  local answered = step.uniques.answered
  if not answered[1] then return end
  --- @include "result/records"
  local away, count = {}, 0
  for _, run in ipairs(step.plan) do
    for i = count + 1, count + run.count do away[i] = run.away end
    count = count + run.count
  end
  local records = {}
  for i = 1, #answered, 3 do
    if away[answered[i] + 1] then
      records[#records + 1] = step.arguments[step.first + 2 * answered[i]]
      records[#records + 1] = string.format('M%d:{"as":%s}', step.now, cjson.encode(answered[i + 1]))
    end
  end
  local row = redis.call('HMGET', step.base .. 'meta', 'ended_since', 'keep_ms')
  records_write(step.base, { now = step.now, since = row[1], keep = row[2], quiet = true }, records)
end
