--- What a step that puts something into the outbox meets: into `found`.
local function outgoing_places(found)
  found[#found + 1] = { 'outgoing', 'zset' }
  found[#found + 1] = { 'outgoing:jobs', 'hash' }
  return found
end
