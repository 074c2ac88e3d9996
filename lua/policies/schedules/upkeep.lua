--- @include "queue/rewound"
--- @include "tick/record"

--- Schedules that one call looks at, in no order.
local SCHEDULES_LOOKED_AT = '16'

--- An interval's next tick is one interval away at the most, else the clock went back: then it is that from now on. A
--- cron expression's next tick is at its time, which comes again.
local function schedules_upkeep(base, queue)
  for _, name in ipairs(redis.call('HRANDFIELD', base .. 'schedules', SCHEDULES_LOOKED_AT)) do
    local record = record_read(base, name)
    local next_ = record and record.every and record.state == 'active' and record.nexts[1]
    if next_ and next_ > queue.now + record.every then
      record.nexts = { queue.now + record.every }
      record_write(base, name, record)
      rewound_note(base, queue.now, next_ - record.nexts[1])
    end
  end
end
