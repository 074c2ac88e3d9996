"""`rqueue-history`: the history of queues as a table, at once or as a stream."""
