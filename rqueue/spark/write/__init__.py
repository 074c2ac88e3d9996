"""`rqueue-jobs`, written: rows of a table become jobs, each once, also when tasks are repeated."""
