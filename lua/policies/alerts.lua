--- An alert if an arrival brings the queue to a depth: one, until it has fallen below and an arrival brings it there
--- again; and one if the queue is as deep as that when the depth is configured (Q-72). The depth is the number of jobs that live: ready, blocked, scheduled or held, but no dead letters. The
--- alerts stand in a stream, which any number of listeners read.
--- HOOKS: depth, grown, options, configured, places
--- META: alert_depth
--- JOB: none
--- KEYS: alerts
--- STORE: list
--- ORDER: 98
--- FAST: yes
--- STRUCTURE: none
--- EXCLUDES: none
--- @include "order/depth"
--- @include "queue/sound_type"

--- Alerts that are kept.
local ALERTS_MOST = 100

--- Of this call: whether it configures another depth.
local ALERTS_CHANGED = false

--- What there is before `more` jobs arrive: {most=, before=}; nil where that many are no reason for an alert; an error
--- reply where the stream is of another type.
local function alerts_depth(base, more)
  local row = redis.call('HMGET', base .. 'meta', 'alert_depth', 'marked')
  local most = tonumber(row[1]) or 0
  if most == 0 then return nil end
  local before = depth_live(base, row[2])
  if before >= most or before + more < most then return nil end
  return sound_type(base, 'alerts', 'stream') or { most = most, before = before }
end

--- The jobs have arrived, or some of them. `depth`: what `alerts_depth` answered; where that was an error there is no
--- alert.
local function alerts_grown(base, now, depth)
  if not depth or depth.err then return end
  local there = depth_live(base, redis.call('HGET', base .. 'meta', 'marked'))
  if there < depth.most then return end
  local key = base .. 'alerts'
  redis.call('XADD', key, '*', 'at', string.format('%d', now), 'depth', there, 'threshold', string.format('%d', depth.most))
  if redis.call('XLEN', key) > ALERTS_MOST then
    redis.call('XDEL', key, redis.call('XRANGE', key, '-', '+', 'COUNT', '1')[1][1])
  end
end

--- What may be configured, into `limits`.
local function alerts_options(base, limits, given)
  limits.alert_depth = { 0, 1000000000 }
  local present = redis.call('HGET', base .. 'meta', 'alert_depth') or '0'
  ALERTS_CHANGED = given.alert_depth ~= nil and given.alert_depth ~= present
end

local function alerts_configured(base, queue)
  local most = tonumber(redis.call('HGET', base .. 'meta', 'alert_depth')) or 0
  if ALERTS_CHANGED and most > 0 then alerts_grown(base, queue.now, { most = most }) end
end

local function alerts_places(_, found)
  found[#found + 1] = { 'alerts', 'stream' }
  return found
end
