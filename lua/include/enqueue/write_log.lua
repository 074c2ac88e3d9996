--- @include "queue/count"

--- What a writer whose steps may come twice notes of them, in the same step: a mark for each row, appended to the log
--- of its run, epoch and partition. A step names the length that the log had when it was made: where the log has grown
--- since, another writer has written for the same partition, and the step changes nothing.

--- The note in `text` ("<run>,<epoch>,<partition>,<length>,<keep ms>,<execution>;<marks>"), or nil and an error reply.
local function write_log_open(base, text)
  local run, epoch, partition, length, keep, execution, marks =
    string.match(text, '^([^,:]+),(%d+),(%d+),(%d+),(%d+),(%w*);()')
  if not run then return nil, redis.error_reply('BADARGS enqueue: a note that cannot be read') end
  local state, log = base .. 'write:' .. run, base .. 'written:' .. run .. ':' .. epoch .. ':' .. partition
  local done = redis.call('HGET', state, 'epoch')
  if tonumber(epoch) < (tonumber(done) or 0) then return nil, redis.error_reply('PASSED ' .. done) end
  local there = redis.call('STRLEN', log)
  if there ~= tonumber(length) then return nil, redis.error_reply('WRITTEN ' .. there) end
  return {
    state = state,
    log = log,
    field = epoch .. ':' .. partition,
    fresh = there == 0,
    keep = keep,
    execution = execution,
    marks = string.sub(text, marks),
  }
end

--- The step is done: so many of its jobs were new.
local function write_log_append(note, accepted, total)
  redis.call('APPEND', note.log, note.marks)
  count_up(note.state, 'rows', total)
  count_up(note.state, 'jobs', accepted)
  if note.fresh then
    redis.call('HSET', note.state, note.field, note.execution)
    redis.call('PEXPIRE', note.log, note.keep)
    redis.call('PEXPIRE', note.state, note.keep)
  end
end
