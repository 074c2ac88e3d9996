--- @hooks trim

--- A limit that is lower than what waits holds at once, for as many as one call ends.
local function ring_configured(base, queue)
  ring_trim(base, queue)
end
