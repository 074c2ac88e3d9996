--- Which of the ticks that are due become jobs.

--- Ticks of one schedule that one call makes jobs of.
local DUE_MOST = 50

--- Those of a schedule with `every`, of which only the last one or those within the window may matter: into `due`.
--- Returns how many are left out.
local function due_of_interval(record, now, due)
  local first, every = record.nexts[1], record.every
  local count = math.floor((now - first) / every) + 1
  local from = count - 1
  if record.missed == 'all' then
    from = math.min(count, math.max(0, math.ceil((now - record.window - first) / every)))
  end
  for n = from, math.min(count, from + DUE_MOST) - 1 do due[#due + 1] = first + n * every end
  record.nexts = { first + (from + #due) * every }
  return from
end

--- Those that become jobs now, oldest first; the record is brought up to date. Where all ticks that are known are past,
--- and one of those not known yet may be the last of the missed ones, it waits for them.
local function due_ticks(record, now)
  local due, later, left_out = {}, {}, 0
  if record.nexts[1] > now then return due end
  if record.every then
    left_out = due_of_interval(record, now, due)
    later = record.nexts
  else
    for _, tick in ipairs(record.nexts) do
      local which = (tick > now or #due == DUE_MOST) and later or due
      which[#which + 1] = tick
    end
    if record.missed ~= 'all' then
      if #later == 0 then
        record.waits = true
        return {}
      end
      left_out = #due - 1
      due = { due[#due] }
    else
      while due[1] and due[1] < now - record.window do
        table.remove(due, 1)
        left_out = left_out + 1
      end
    end
  end
  if record.missed == 'skip' and now - due[1] > record.grace then
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
