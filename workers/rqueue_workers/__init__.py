"""The processes that run rqueue's jobs: a supervisor and its workers."""
