"""Where the time of a job goes, step by step."""
