--- How many consumers a queue takes; and the index of the last of them, as text: who looks at all of them says so.
local CONSUMERS_MOST, CONSUMERS_LAST = 10000, '9999'
