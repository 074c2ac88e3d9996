from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from tests.workers.children import WorkerFixture
from tests.workers.pools import Pool


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    """A queue of this test alone."""
    with Queue(queue_name, server.url) as queue:
        yield queue


@pytest.fixture
def make_pool(
    server: EmbeddedRedis, queue_name: str, tmp_path: Path
) -> Iterator[Callable[..., Pool]]:
    """Starts pools as programs: options as in a pool file, see `Pool`."""
    made: list[Pool] = []

    def make(url: str = "", **options: object) -> Pool:
        options.setdefault("queues", [queue_name])
        made.append(Pool(url or server.url, tmp_path / f"pool{len(made)}.log", **options))
        return made[-1]

    yield make
    for pool in made:
        pool.clean_up()


@pytest.fixture
def workers(server: EmbeddedRedis, queue_name: str, tmp_path: Path) -> Iterator[WorkerFixture]:
    """A queue of this test alone, and worker processes for it without a supervisor."""
    made = WorkerFixture(server.url, queue_name, tmp_path)
    yield made
    made.close()
