--- The record of a job that was cancelled while a consumer held it: which one, and where the code that runs was to be
--- stopped, how far that is.

--- The generation of records in which it is, what stands before its JSON, and that as a table; nil where the id has no
--- such record. {by=, stop=, kill=}: the consumer that was asked, how far it is (requested, delivered, ended), and true
--- if its process is to be killed; {holder=}: the consumer that held it, and that nobody has asked to stop it.
local function stop_record(base, id)
  for _, name in ipairs({ 'ended', 'ended:old' }) do
    local record = redis.call('HGET', base .. name, id)
    if record then
      local head, text = string.match(record, '^(C%d+:)(.+)$')
      local known, said = pcall(cjson.decode, text or '')
      if not known or type(said) ~= 'table' or type(said.by or said.holder) ~= 'string' then return nil end
      return base .. name, head, said
    end
  end
end
