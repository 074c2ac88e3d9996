"""Replay: jobs of the past are enqueued again, each once, however often it is interrupted."""
