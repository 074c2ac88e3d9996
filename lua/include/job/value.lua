--- @include "queue/constants"

--- A job's value: "<position>,<enqueued>[,<level>,<deliveries>,<attempts>,<max>,<due>[,<crashes>,<max crashes>
--- [,<expires>]]];" and its envelope.
--- The shorter forms stand for level 4 and zeros, so that an ordinary job carries no more than it needs.
--- `attempts` counts what was charged, crashes too; `crashes` those of them that cost a worker its process.
--- `due` 0: the job stands in its ready list, among the others by position. Else it is in the schedule until then, and
--- in its due list from then on, by due time and, at the same instant, by position.
--- `expires`: ms since the epoch, 0 = never; what it means is a policy's to say.
--- Behind the numbers stand `tags`, each "|<letter><text>": what only a policy knows the meaning of.

--- What has no header is `damaged`, and all of it its envelope: nothing that reads a value fails. A step that would put
--- such a job back somewhere makes it a dead letter instead (`dead_letter_undecodable`), so that its bytes are kept.
local function value_parse(value)
  local head, tags, body = string.match(value, '^([^;|]*)([^;]*);()')
  local position, enqueued, level, deliveries, attempts, max, due, crashes, max_crashes, expires =
    string.match(head or '', '^(%d+),(-?%d+),?(%d*),?(%d*),?(%d*),?(%d*),?(%d*),?(%d*),?(%d*),?(%d*)$')
  -- longer numbers would not be exact
  if not position or math.max(#position, #enqueued, #deliveries, #attempts, #max, #due, #crashes, #max_crashes, #expires)
    > 15 or #level > 2 or level ~= '' and due == '' or crashes ~= '' and max_crashes == '' then
    return { damaged = true, position = 0, enqueued = EPOCH, level = 4, deliveries = 0, attempts = 0, max = 0, due = 0,
      crashes = 0, max_crashes = 0, expires = 0, tags = '', envelope = value }
  end
  return {
    position = tonumber(position),
    enqueued = tonumber(enqueued) + EPOCH,
    level = tonumber(level) or 4,
    deliveries = tonumber(deliveries) or 0,
    attempts = tonumber(attempts) or 0,
    max = tonumber(max) or 0,
    due = tonumber(due) or 0,
    crashes = tonumber(crashes) or 0,
    max_crashes = tonumber(max_crashes) or 0,
    expires = tonumber(expires) or 0,
    tags = tags,
    envelope = string.sub(value, body),
  }
end

local function value_numbers(job)
  if job.expires > 0 then
    return string.format('%d,%d,%d,%d,%d,%d,%d,%d,%d,%d;', job.position, job.enqueued - EPOCH, job.level, job.deliveries,
      job.attempts, job.max, job.due, job.crashes, job.max_crashes, job.expires)
  end
  if job.crashes > 0 or job.max_crashes > 0 then
    return string.format('%d,%d,%d,%d,%d,%d,%d,%d,%d;', job.position, job.enqueued - EPOCH, job.level, job.deliveries,
      job.attempts, job.max, job.due, job.crashes, job.max_crashes)
  end
  if job.level == 4 and job.deliveries == 0 and job.attempts == 0 and job.max == 0 and job.due == 0 then
    return string.format('%d,%d;', job.position, job.enqueued - EPOCH)
  end
  return string.format('%d,%d,%d,%d,%d,%d,%d;', job.position, job.enqueued - EPOCH, job.level, job.deliveries,
    job.attempts, job.max, job.due)
end

local function value_header(job)
  local numbers = value_numbers(job)
  if (job.tags or '') == '' then return numbers end
  return string.sub(numbers, 1, -2) .. job.tags .. ';'
end

--- The name in a job's tag of this letter, for people: g: its group, e: its share; nil without one.
local function value_name(job, letter)
  local escaped = job.tags and string.match(job.tags, '|' .. letter .. '([^|]*)')
  if not escaped then return nil end
  return (string.gsub(escaped, '%%(%x%x)', function(digits) return string.char(tonumber(digits, 16)) end))
end

--- The task's name, read from the envelope, signed or not; "" where there is none.
local function value_task(envelope)
  return string.match(envelope, '^[^%[]*%["([^"]*)"') or ''
end

--- The job's labels as a JSON object of text, as rqueue.model.labels makes it; nil where it has none, or cannot be
--- read.
local function value_labels(envelope)
  if not string.find(envelope, '"labels":{"', 1, true) then return nil end
  local readable, parts = pcall(cjson.decode, string.match(envelope, '%[.*') or '')
  local labels = readable and type(parts) == 'table' and type(parts[4]) == 'table' and parts[4].labels
  if type(labels) ~= 'table' then return nil end
  local found, count = {}, 0
  for name, value in pairs(labels) do
    if type(name) == 'string' and count < 16 then
      if type(value) == 'number' then value = string.format('%.17g', value) end
      value = tostring(value)
      -- at most 200 bytes, and no part of a character
      if #value > 200 then
        local rest = string.byte(value, 201)
        value = string.sub(value, 1, 200)
        if rest >= 128 and rest < 192 then value = string.gsub(value, '[\192-\255][\128-\191]*$', '') end
      end
      found[name] = value
      count = count + 1
    end
  end
  if count == 0 then return nil end
  return found
end
