--- What a queue does that was not told otherwise: ms that it keeps records, rows of history that it keeps.
local KEEP_MS, HISTORY_ROWS = 600000, 200000
