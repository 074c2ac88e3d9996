--- What a job's `enqueued` counts from, ms: the first of January 2025. It saves two digits in each value.
local EPOCH = 1735689600000
