--- What several steps count with.

--- What a job's `enqueued` counts from, ms: the first of January 2025. It saves two digits in each value.
local EPOCH = 1735689600000

--- How many consumers one call looks at or wakes at the most; and the index of the last of them, as text, since a
--- number costs a script more.
local WAKE_MAX, WAKE_LAST = 32, '31'

--- What a queue does that is not configured otherwise: ms that it keeps records, rows of history that it keeps.
local KEEP_MS, HISTORY_ROWS = 600000, 200000
