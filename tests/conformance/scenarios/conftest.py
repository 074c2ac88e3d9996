"""Pools as programs of their own, and queues of every kind."""

import pytest

from tests.support.queue_fixture import QueueFixture
from tests.workers.pools import make_pool  # noqa: F401


@pytest.fixture
def kind(q: QueueFixture, request: pytest.FixtureRequest) -> str:
    """The kind that `q` is made one of (`every_kind`)."""
    q.become(request.param)
    found: str = request.param
    return found
