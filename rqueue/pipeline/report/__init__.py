"""The report: what the history says of queues, as numbers, a page and plots."""
