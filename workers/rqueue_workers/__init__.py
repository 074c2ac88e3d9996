"""The processes that run rqueue's jobs: a supervisor (`pool`) and its workers (`worker`)."""
