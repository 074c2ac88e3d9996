"""`rqueue-jobs`, read: the jobs of queues as a table, page by page."""
