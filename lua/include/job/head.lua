--- What stands before the envelope in a job's value.

--- The header without its semicolon; nil where there is none: a mark, or a value of something else.
local function head_of(value)
  return string.match(value, '^(%d+,%-?%d+[%d,]*|?[^;]*);')
end
