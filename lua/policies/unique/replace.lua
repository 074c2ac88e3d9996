--- @include "job/value"
--- @include "queue/rewound"
--- @include "schedule/add"
--- @include "consumer/wait_for_bytes"
--- @hooks weigh

--- What `instead` found: periods are cut that a clock which went back has made too long, and jobs that wait get the
--- envelopes, and some the due times, of those that are not stored. All
--- keys that this meets were looked at. `how` also has `timer` and `paused` of the queue.
local function unique_replace(base, how, arguments, first)
  for _, one in ipairs(how.cut or {}) do
    redis.call('ZADD', base .. 'periods', 'XX', string.format('%d', one.at), one.key)
    rewound_note(base, how.now, one.by)
  end
  local ids = {}
  for _, one in ipairs(how.replaced) do
    local envelope = arguments[first + 2 * one.at - 1]
    if one.id then
      local header = string.match(one.value, '^[^;]*;')
      if one.due then
        local job = value_parse(one.value)
        local sooner = one.due < job.due
        job.due = one.due
        header = value_header(job)
        schedule_add(base, { { due = job.due, level = job.level, position = job.position, id = one.id } })
        if sooner and not how.paused then schedule_add_watch(base, how.now, job.due, how.timer) end
      end
      redis.call('HSET', base .. 'jobs', one.id, header .. envelope)
      --- @each weigh(base, how.now, { one.id, header .. envelope }, 'scheduled')
      ids[#ids + 1] = one.id
    end
  end
  wait_for_bytes_over(base, how.now, ids)
end
