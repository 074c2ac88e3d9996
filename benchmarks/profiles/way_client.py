"""A program that enqueues jobs as an application does, one by one, and writes down its way.

`python -m benchmarks.profiles.way_client URL JOBS OUTPUT`. The first job is not followed: with it
connections are opened and scripts sent. Before each job it waits until the worker does.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import rqueue
from benchmarks.apps.tasks import add
from benchmarks.profiles.tracer import Tracer

SECONDS = 30.0


def settled() -> None:
    """Wait until the one worker waits for work and the last job's outcome is known."""
    end = time.monotonic() + SECONDS
    queue = rqueue.queue()
    while (
        (counts := queue.counts()).interested < 1
        or counts.held
        # it knows that nothing is to do, and is on its way to the wait
        or not queue.redis.info("clients")["blocked_clients"]
    ):
        if time.monotonic() > end:
            raise TimeoutError(f"no idle worker within {SECONDS:g} s: {counts}")
        time.sleep(0.005)


def main(url: str, jobs: int, output: str) -> None:
    """Enqueue them, and wait for each result."""
    rqueue.configure(url=url)
    found = []
    for _ in range(jobs + 2):
        settled()
        enqueue, result = Tracer(), Tracer()
        begun = time.monotonic_ns()
        with enqueue.running():
            handle = add.enqueue(2, 3)
        with result.running():
            value = handle.result(timeout=SECONDS)
        assert value == 5, value
        found.append({"begun": begun, "enqueue": enqueue.events, "result": result.events})
    settled()
    rqueue.disconnect()
    Path(output).write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
