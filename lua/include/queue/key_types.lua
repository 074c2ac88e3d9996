--- Of which type each key of a queue is, by what follows the queue's prefix.

local KEY_TYPES = {
  meta = 'hash', jobs = 'hash', causes = 'hash', errors = 'hash', ended = 'hash', ['ended:old'] = 'hash', byte_waiters = 'hash',
  awaited = 'hash', parked = 'hash', returns_to = 'hash', scheduled = 'zset', dead = 'zset', consumers = 'zset',
  interested = 'zset', notified = 'zset', not_interested = 'set', browsers = 'set', history = 'stream',
}

--- Of keys that only queues of some kind have.
local KEY_TYPES_OF_POLICIES = { expiring = 'zset', groups = 'hash', heads = 'zset', blocked = 'zset',
  outgoing = 'zset', ['outgoing:jobs'] = 'hash', sources = 'hash', live = 'set',
  standbys = 'zset', producers = 'zset', grants = 'zset', wishes = 'hash',
  classes = 'hash', audiences = 'hash', hears = 'hash', latest = 'hash',
  schedules = 'hash', ticks = 'zset', owed = 'hash', refills = 'set', refusals = 'set',
  unique = 'hash', periods = 'zset', deferred = 'hash', edges = 'hash', stops = 'hash', unsealed = 'zset', owners = 'hash',
  limits = 'hash', declared = 'hash', permits = 'hash', claims = 'hash', reopened = 'set', rates = 'zset', tokens_due = 'zset',
  alerts = 'stream', sizes = 'hash', strands = 'hash', lined = 'hash', turns = 'hash', weights = 'hash' }

--- Of keys that are followed by a name.
local KEY_TYPES_NAMED = { ready = 'list', due = 'list', held = 'list', wake = 'list', lapsed = 'list', result = 'list', stop = 'list', watch = 'stream',
  progress = 'hash', log = 'list',
  room = 'list', group = 'zset', class = 'zset', refused = 'zset', own = 'zset', interested = 'zset', consumer = 'hash', running = 'hash', write = 'hash', written = 'string',
  gathered = 'hash', heard = 'string', served = 'zset' }

--- What the key is, and what it should be; nil where it is right, is not there, or is none of rqueue's own.
local function key_types_wrong(base, key)
  local meant = KEY_TYPES[key] or KEY_TYPES_OF_POLICIES[key] or KEY_TYPES_NAMED[string.match(key, '^(%a+):') or '']
  local kind = meant and redis.call('TYPE', base .. key).ok
  if not meant or kind == 'none' or kind == meant then return nil end
  return kind, meant
end
