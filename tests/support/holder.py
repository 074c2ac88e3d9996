"""A consumer in a process of its own, which does as it is asked on its standard input: to be killed
and frozen by tests.

A line in is JSON, a method of `Consumer` and its arguments; a line out is JSON too: what it
returned, ids in place of jobs, or that its registration is lost.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from rqueue.client._sync.queue import Queue
from rqueue.errors import RegistrationLost
from rqueue.model.job import Delivery
from tests.support.forked_program import ForkedProgram


class Holder:
    """Such a process, with a registered consumer; it ends with the test's `with`. options: those of
    `Queue.consumer`."""

    def __init__(self, url: str, queue: str, **options: Any) -> None:
        said = json.dumps({"renew": False, **options})
        reads, asks = os.pipe()
        answered, writes = os.pipe()
        self._asks, self._answers = os.fdopen(asks, "w"), os.fdopen(answered)
        with os.fdopen(reads, "rb") as asked, os.fdopen(writes, "wb") as answers:
            self._process = ForkedProgram(
                "tests.support.holder", url, queue, said, output=answers, input=asked
            )
        self.name: str = self._read()

    def __enter__(self) -> Holder:
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()
        self._asks.close()
        self._answers.close()

    def ask(self, method: str, *arguments: Any) -> None:
        """Ask for one step; `answer` brings what came of it."""
        self._asks.write(json.dumps([method, *arguments]) + "\n")
        self._asks.flush()

    def answer(self) -> Any:
        """What came of the oldest step whose answer was not read."""
        return self._read()

    def do(self, method: str, *arguments: Any) -> Any:
        """One step and what came of it."""
        self.ask(method, *arguments)
        return self.answer()

    def freeze(self) -> None:
        """Stop it where it is."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill it, and wait for its end."""
        self._process.kill()
        self._process.wait()

    def _read(self) -> Any:
        line = self._answers.readline()
        assert line, "it has ended"
        return json.loads(line)


def main(url: str, name: str, options: str) -> None:
    """Serve one test."""
    with Queue(name, url) as queue:
        consumer = queue.consumer(**json.loads(options)).register()
        print(json.dumps(consumer.name), flush=True)
        for line in sys.stdin:
            method, *arguments = json.loads(line)
            try:
                found = getattr(consumer, method)(*arguments)
            except RegistrationLost:
                found = "its registration is lost"
            print(json.dumps(found, default=_plain), flush=True)


def _plain(value: object) -> object:
    return value.id if isinstance(value, Delivery) else repr(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
