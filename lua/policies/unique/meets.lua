--- What a step about jobs with these values, or tags, may meet: into `found`.
local function unique_meets(values, found)
  for _, value in ipairs(values) do
    if value and string.find(value, '^[^;]-|u') then
      found[#found + 1] = { 'unique', 'hash' }
      found[#found + 1] = { 'periods', 'zset' }
      return found
    end
  end
  return found
end
