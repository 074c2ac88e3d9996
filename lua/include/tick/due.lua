--- Which of the ticks that are due become jobs.

--- Ticks of one schedule that one call makes jobs of.
local DUE_MOST = 50

--- Those of a schedule with `every` from `oldest` on, the last one at least, into `due`. Returns how many are left out.
local function due_of_interval(record, now, oldest, due)
  local first, every = record.nexts[1], record.every
  local count = math.floor((now - first) / every) + 1
  local from = math.max(0, math.ceil((oldest - first) / every))
  from = math.min(from, record.missed == 'all' and count or count - 1)
  for n = from, math.min(count, from + DUE_MOST) - 1 do due[#due + 1] = first + n * every end
  record.nexts = { first + (from + #due) * every }
  return from
end

--- Those of known ticks from `oldest` on into `due`, those to come into `later`; the last one of the others, and how many
--- these are.
local function due_of_known(record, now, oldest, due, later)
  local passed, left_out = nil, 0
  for _, tick in ipairs(record.nexts) do
    if tick <= now and tick < oldest then
      passed, left_out = tick, left_out + 1
    else
      local which = (tick > now or #due == DUE_MOST) and later or due
      which[#which + 1] = tick
    end
  end
  return passed, left_out
end

--- Those that become jobs now, oldest first; the record is brought up to date. Ticks from `present` on are not missed: a
--- pool was there all the while. Where all ticks that are known are past, and one of those not known yet may be the last
--- of the missed ones, it waits for them.
local function due_ticks(record, now, present)
  local due, later, left_out = {}, {}, 0
  if record.nexts[1] > now then return due end
  local oldest = record.missed == 'all' and now - record.window or present
  if record.every then
    left_out = due_of_interval(record, now, oldest, due)
    later = record.nexts
  else
    local passed
    passed, left_out = due_of_known(record, now, oldest, due, later)
    if record.missed ~= 'all' and passed and #due == 0 then
      if #later == 0 then
        record.waits = true
        return due
      end
      due, left_out = { passed }, left_out - 1
    end
  end
  if record.missed == 'skip' and due[1] < present and now - due[1] > record.grace then
    due = {}
    left_out = left_out + 1
  end
  for _, tick in ipairs(record.nexts) do
    if tick <= now and tick < (later[1] or math.huge) then record.after = tick end
  end
  record.nexts = later
  record.left_out = record.left_out + left_out
  record.behind = record.behind + left_out
  return due
end
