"""A second queue beside a test's own, for what goes from one to the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rqueue.client._sync.queue import Queue
from tests.support.queue_fixture import QueueFixture


@contextmanager
def second(q: QueueFixture, name: str = "/other", **options: Any) -> Iterator[QueueFixture]:
    """A queue that is there, named after the test's own one."""
    with Queue(q.queue.name + name, redis=q.queue.redis) as queue:
        queue.configure(**{"max_deliveries": 10, **options})
        found = QueueFixture(queue)
        yield found
        found.close()
