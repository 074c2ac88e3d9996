--- The outbox of a queue: jobs that are on their way to other queues. Whatever step puts them there (a dead letter that
--- goes elsewhere, a transaction that enqueues into another queue), they are sent in steps of their own, and are enqueued
--- once: a target knows the ids that it has had.
--- HOOKS: sends, places, keeps
--- META: outgoing_turn, moved
--- JOB: none
--- KEYS: outgoing, outgoing:jobs
--- STORE: list
--- ORDER: 75
--- FAST: yes
--- STRUCTURE: none
--- EXCLUDES: none

--- How many of them wait to be sent, if some may be sent now; else 0.
local function outbox_sends(base, now)
  local due = redis.call('ZCOUNT', base .. 'outgoing', '-inf', string.format('%d', now))
  return due > 0 and redis.call('ZCARD', base .. 'outgoing') or 0
end

local function outbox_places(_, found)
  found[#found + 1] = { 'outgoing', 'zset' }
  found[#found + 1] = { 'outgoing:jobs', 'hash' }
  return found
end

--- Whether the policy cannot be given up: an error reply.
local function outbox_keeps(base, given_up)
  if given_up.outbox and redis.call('EXISTS', base .. 'outgoing') == 1 then
    return redis.error_reply('CONFLICT kind keeps outbox while jobs are on their way to other queues')
  end
end
