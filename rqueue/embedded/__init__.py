"""A server of one's own for tests, demos and `rqueue dev`: the binary found, started, ended.

May import what `rqueue.client` may, and `rqueue.client`.
"""

from rqueue.embedded.server import EmbeddedRedis, running

__all__ = ["EmbeddedRedis", "running"]
