"""What a server is asked, as it is asked: for tests that wait until another client waits."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis


class Monitor:
    """The commands of all clients, in order, from when it was made."""

    def __init__(self, monitor: Any) -> None:
        self._monitor = monitor

    def wait_for(self, *words: str, times: int = 1) -> str:
        """Read on until a command has all of `words` in it, so many times; returns the last one.

        Fails with redis-py's TimeoutError after 20 seconds without any command.
        """
        while True:
            command = str(self._monitor.next_command()["command"])
            if all(word.lower() in command.lower() for word in words):
                times -= 1
                if times == 0:
                    return command


@contextmanager
def monitoring(url: str) -> Iterator[Monitor]:
    """A `Monitor` of the server at `url`."""
    with redis.Redis.from_url(url, socket_timeout=20) as client, client.monitor() as monitor:
        yield Monitor(monitor)
