--- The clock went back: a time stands further in the future than it can. It is cut to what it can be, and the doctor says
--- so.

--- `by`: how many ms were cut off.
local function rewound_note(base, now, by)
  redis.call('HSET', base .. 'meta', 'rewound', string.format('%d %d', now, by))
end
