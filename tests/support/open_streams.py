"""Streams that go on: their producer is somewhere between two steps."""

from __future__ import annotations

from rqueue.client._sync.queue import Queue
from rqueue.protocol.stream_packing import StreamPacking
from rqueue.tasks.stream import stream
from rqueue.transport.redis_client import execute
from tests.support.workflows import double, plus


class OpenStream:
    """A stream of `double`, and `plus` behind it, that is opened now."""

    def __init__(self, queue: Queue, id: str) -> None:
        self._queue = queue
        self._packing = StreamPacking(queue._packer, stream([], plus.si(1, 1)), id, spread=False)
        execute(queue.redis, self._packing.opening().call(queue.keys), queue=queue.name)

    def step(self, count: int) -> None:
        """Store so many members."""
        for number in range(count):
            assert self._packing.take(double.s(number)) is None
        batch = self._packing.rest()
        assert batch is not None
        execute(self._queue.redis, batch.call(self._queue.keys), queue=self._queue.name)
