--- Selectors over labels, evaluated as the client's parser wrote them down (`rqueue.model.selector`): words with spaces
--- between, operators behind what they stand for. A word is a label `l<name>`, a value as in a set of labels
--- (`s<text>`, `n<number>`, `t`, `f`), or one of `= <> < <= > >= & | ! ?` (is null) and `~<pattern>` (like). Names and
--- texts are escaped as in keys.

--- Three values: `t`, `f`, and false for what is neither. A label that a job does not have is false too.

--- {name = word}: a set of labels, `<name>:<word>+...`.
local function evaluate_labels(class)
  local labels = {}
  for name, word in string.gmatch(class, '([^:+]+):([^+]*)') do labels[name] = word end
  return labels
end

local function evaluate_compare(sign, one, other)
  if not one or not other then return false end
  local kind, its = string.sub(one, 1, 1), string.sub(other, 1, 1)
  local same
  if kind == 'n' and its == 'n' then
    one, other = tonumber(string.sub(one, 2)), tonumber(string.sub(other, 2))
    if not one or not other then return false end
    if sign == '<' then return one < other and 't' or 'f' end
    if sign == '<=' then return one <= other and 't' or 'f' end
    if sign == '>' then return one > other and 't' or 'f' end
    if sign == '>=' then return one >= other and 't' or 'f' end
    same = one == other
  elseif sign ~= '=' and sign ~= '<>' then
    return false
  elseif kind == 's' and its == 's' or kind ~= 's' and its ~= 's' and kind ~= 'n' and its ~= 'n' then
    same = one == other
  else
    return false
  end
  return same == (sign == '=') and 't' or 'f'
end

--- The characters of an escaped text; of a pattern `*` and `.` are what stands for others.
local function evaluate_signs(escaped)
  local signs = {}
  local text = string.gsub(escaped, '[*.]', function(wild) return wild == '*' and '\254' or '\255' end)
  text = string.gsub(text, '%%(%x%x)', function(digits) return string.char(tonumber(digits, 16)) end)
  for sign in string.gmatch(text, '[%z\1-\127\194-\255][\128-\191]*') do signs[#signs + 1] = sign end
  return signs
end

--- Greedy, with one place to go back to: no pattern costs more than its length times that of the text.
local function evaluate_like(word, pattern)
  if not word or string.sub(word, 1, 1) ~= 's' then return false end
  local text, wanted = evaluate_signs(string.sub(word, 2)), evaluate_signs(pattern)
  local at, place, star, from = 1, 1, nil, nil
  while at <= #text do
    if wanted[place] == '\254' then
      star, from = place, at
      place = place + 1
    elseif wanted[place] == '\255' or wanted[place] == text[at] then
      at, place = at + 1, place + 1
    elseif star then
      from = from + 1
      at, place = from, star + 1
    else
      return 'f'
    end
  end
  while wanted[place] == '\254' do place = place + 1 end
  return place > #wanted and 't' or 'f'
end

--- Whether a job with these labels is selected; nil where the words make no expression.
local function evaluate(postfix, labels)
  local stack, top = {}, 0
  for word in string.gmatch(postfix, '%S+') do
    local kind = string.sub(word, 1, 1)
    local operands = (kind == '!' or kind == '?' or kind == '~') and 1 or string.find('=<>&|', kind, 1, true) and 2 or 0
    if top < operands then return nil end
    local one, other = stack[top - operands + 1], stack[top]
    top = top - operands + 1
    if kind == 'l' then
      stack[top] = labels[string.sub(word, 2)] or false
    elseif operands == 0 then
      stack[top] = word
    elseif kind == '?' then
      stack[top] = one and 'f' or 't'
    elseif kind == '~' then
      stack[top] = evaluate_like(one, string.sub(word, 2))
    elseif kind == '!' then
      stack[top] = one == 't' and 'f' or one == 'f' and 't'
    elseif kind == '&' then
      stack[top] = (one == 'f' or other == 'f') and 'f' or one == 't' and other == 't' and 't'
    elseif kind == '|' then
      stack[top] = (one == 't' or other == 't') and 't' or one == 'f' and other == 'f' and 'f'
    else
      stack[top] = evaluate_compare(word, one, other)
    end
  end
  if top ~= 1 then return nil end
  return stack[1] == 't'
end
