from collections.abc import Iterator
from pathlib import Path

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from tests.workers.children import WorkerFixture
from tests.workers.pools import make_pool  # noqa: F401


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    """A queue of this test alone."""
    with Queue(queue_name, server.url) as queue:
        yield queue


@pytest.fixture
def workers(server: EmbeddedRedis, queue_name: str, tmp_path: Path) -> Iterator[WorkerFixture]:
    """A queue of this test alone, and worker processes for it without a supervisor."""
    made = WorkerFixture(server.url, queue_name, tmp_path)
    yield made
    made.close()
