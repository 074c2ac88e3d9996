"""The queue's behaviour through the public API. Time is moved, nobody sleeps."""

from collections.abc import Callable, Iterator

import pytest

from rqueue.client import Queue
from rqueue.embedded import EmbeddedRedis
from tests.support.bench import Bench


@pytest.fixture
def bench(server: EmbeddedRedis, queue_name: str) -> Iterator[Bench]:
    with Queue(queue_name, server.url) as queue:
        bench = Bench(queue)
        yield bench
        bench.close()


@pytest.fixture
def make_bench() -> Iterator[Callable[[EmbeddedRedis], Bench]]:
    made: list[Queue] = []

    def make(server: EmbeddedRedis) -> Bench:
        made.append(Queue("q", server.url))
        return Bench(made[-1])

    yield make
    for queue in made:
        queue.close()
