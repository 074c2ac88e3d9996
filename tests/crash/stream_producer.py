"""A program that enqueues a stream: its arguments are a URL, a queue, how many members there are,
and "hang" for one that says "drawn" behind its last member and never ends."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator

from rqueue import Queue, stream
from rqueue.tasks.workflow import Signature
from tests.crash.app import step


def drawn(members: int, hangs: bool) -> Iterator[Signature[None]]:
    yield from (step.si(0.5) for _ in range(members))
    if hangs:
        print("drawn", flush=True)
        while True:
            signal.pause()


if __name__ == "__main__":
    url, queue, members, *end = sys.argv[1:]
    Queue(queue, url).enqueue_workflow(stream(drawn(int(members), bool(end)), step.si(0)), id="w")
