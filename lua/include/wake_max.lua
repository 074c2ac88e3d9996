--- How many consumers one call looks at or wakes at the most; and the index of the last of them, as text, since a number
--- costs a script more.
local WAKE_MAX, WAKE_LAST = 32, '31'
