"""Replay: jobs of the past are enqueued again, each once, whatever interrupts it."""
