"""rqueue: a worker queue for Python on Redis."""

__version__ = "0.1.0"
