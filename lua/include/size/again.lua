--- Whether a size is in the sum that is being counted anew: it has a 0 before it then (`size/recount`).
local function size_again(known)
  return known ~= false and #known > 1 and string.byte(known) == 48
end
