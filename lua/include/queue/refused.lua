--- What a step that was undone answers. Lua's pcall makes text of an error, with its place (6.2) or without.

--- The error reply of a command, from what pcall caught. Raises what is none.
local function refused_reply(failure)
  if type(failure) ~= 'string' then return failure end
  local said = string.match(failure, 'user_script: ?%d+: (%u+ .*)$') or string.match(failure, '^%u+ .*$')
  if said then return redis.error_reply(said) end
  error(failure, 0)
end
