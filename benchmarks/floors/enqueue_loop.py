"""A plain process that enqueues: `python -m benchmarks.floors.enqueue_loop URL QUEUE FIRST COUNT`.

It says when it is ready, waits for the signal to go, calls `enqueue_many`, and says that it is
done; all through lists of the bench's server.
"""

from __future__ import annotations

import sys

import redis

from benchmarks.apps.tasks import weigh
from rqueue.client._sync.queue import Queue
from rqueue.protocol.job_packer import Call

READY, GO, DONE = "enqueue-loop:ready", "enqueue-loop:go", "enqueue-loop:done"
TEXT = "%0100d"
"""The argument of each job: its number, with 100 digits."""


def main(url: str, queue: str, first: int, count: int) -> None:
    """Enqueue jobs with the numbers from `first` on."""
    client = redis.Redis.from_url(url)
    with Queue(queue, url) as target:
        target.counts()  # connected
        client.rpush(READY, first)
        client.blpop([GO], 60)
        target.enqueue_many(Call(weigh, (TEXT % number,)) for number in range(first, first + count))
        client.rpush(DONE, first)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
