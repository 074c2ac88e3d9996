--- @hooks delayed

--- What a step about jobs with these values, or tags, may meet: into `found`.
local function limits_meets(values, found)
  local seen, any = {}, false
  for _, value in ipairs(values) do
    local tags = value and string.match(value, '^[%d,-]*(|[^;]*)')
    for limit in string.gmatch(tags or '', '|l([^|:]*)') do
      if not seen[limit] then
        seen[limit], any = true, true
        found[#found + 1] = { 'group:' .. limit, 'zset' }
        -- when it finds its tokens is compared with what is due
        if limits_is_rate(limit) then found[#found + 1] = { 'scheduled', 'zset' } end
      end
    end
  end
  return any and limits_places(nil, found) or found
end
