"""The queue's behaviour through the public API. Time is moved, nobody sleeps."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.transport.memory.server import forget
from tests.support import drivers
from tests.support.queue_fixture import QueueFixture
from tests.support.redis_server import OLDEST_NAME
from tests.support.runners import KINDS, Runner, make_runner
from tests.support.twins import take_turns

ON_A_CLUSTER = {
    "tests/conformance/test_alternate.py",  # queues in two slots
    "tests/conformance/test_coming_back.py",
    "tests/conformance/test_leases.py",
    "tests/conformance/test_moving.py",  # in two slots
    "tests/conformance/test_order.py",
    "tests/conformance/test_pause.py",
    "tests/conformance/test_settling.py",
    "tests/conformance/test_wake_ups.py",
}
"""What is played on a cluster each time; all the rest in the long run."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    again, twins = [], defaultdict(list)
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        q = parameters.get("q")
        if parameters.get("server_name") == OLDEST_NAME:
            if q in (drivers.MEMORY, drivers.CLUSTER):
                again.append(item)  # on no server by that name: the same as on the newest
            elif q in drivers.REAL[1:]:  # what a client does is the same on each server
                item.add_marker(pytest.mark.long)
        elif q in drivers.GENERATED:
            twins[_without(item, q)].append(item)
        elif q == drivers.CLUSTER and item.nodeid.partition("::")[0] not in ON_A_CLUSTER:
            item.add_marker(pytest.mark.long)
    take_turns(twins)
    if again:
        config.hook.pytest_deselected(items=again)
        left = {id(item) for item in again}
        items[:] = [item for item in items if id(item) not in left]


def _without(item: pytest.Item, q: str) -> str:
    """What a test is called, whichever its client is."""
    test, _, parameters = item.nodeid.partition("[")
    others = sorted(part for part in parameters.removesuffix("]").split("-") if part != q)
    return "-".join([test, *others])


@pytest.fixture(params=drivers.KINDS)
def q(
    request: pytest.FixtureRequest, server: EmbeddedRedis, queue_name: str
) -> Iterator[QueueFixture]:
    """A queue whose consumers are, one kind after the other, those that there are: one of its own,
    an asyncio one, a worker's subscription; and on a server in memory, and on a cluster, one of
    these, each in its third of the tests."""
    kind = place = request.param
    if place in (drivers.MEMORY, drivers.CLUSTER):
        kind = drivers.REAL[crc32(request.node.nodeid.encode()) % len(drivers.REAL)]
    if place == drivers.MEMORY:
        url = f"memory://{queue_name}"
    elif place == drivers.CLUSTER:
        url = request.getfixturevalue("redis_cluster").cluster_url
    else:
        url = server.url
    with Queue(queue_name, url) as queue:
        q = QueueFixture(queue, kind, url)
        yield q
        q.close()
        if place == drivers.CLUSTER:
            forget_in_cluster(queue)
    if place == drivers.MEMORY:
        forget(queue_name)


def forget_in_cluster(queue: Queue) -> None:
    """Leave nothing of a test's queues on the cluster that all tests share."""
    for key in queue.redis.scan_iter(match=f"*{queue.name}*", count=10_000):
        queue.redis.unlink(key)


@pytest.fixture(params=("consumer", "asyncio"))
def own_q(
    request: pytest.FixtureRequest, server: EmbeddedRedis, queue_name: str
) -> Iterator[QueueFixture]:
    """As `q`, for what no worker does: its consumers are of one's own, in a thread or on a loop."""
    with Queue(queue_name, server.url) as queue:
        q = QueueFixture(queue, request.param, server.url)
        yield q
        q.close()


@pytest.fixture
def make_q() -> Iterator[Callable[[EmbeddedRedis], QueueFixture]]:
    made: list[Queue] = []

    def make(server: EmbeddedRedis) -> QueueFixture:
        made.append(Queue("q", server.url))
        return QueueFixture(made[-1])

    yield make
    for queue in made:
        queue.close()


@pytest.fixture(params=KINDS)
def runner(
    request: pytest.FixtureRequest, server: EmbeddedRedis, queue_name: str, tmp_path: Path
) -> Iterator[Runner]:
    """Runs the jobs of `q`'s queue one after the other, once it is started: a consumer of one's
    own, an asyncio one, and a real pool of one process and one slot."""
    runner = make_runner(request.param, server.url, queue_name, tmp_path)
    yield runner
    runner.stop()
