from collections import defaultdict
from collections.abc import Iterator

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.putter import BackgroundPuts
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol import repeats
from rqueue.protocol.slots import Redirection, SlotWait
from tests.support.proxy import Proxy
from tests.support.twins import take_turns


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    twins = defaultdict(list)
    for item in items:
        place, both, test = item.nodeid.partition("/client/_")
        if both and place == "tests":
            twins[test.partition("/")[2]].append(item)
    take_turns(twins)


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


@pytest.fixture
def consumer(queue: Queue) -> Iterator[Consumer]:
    """A registered consumer of `queue` with a wide window, which renews no lease."""
    with queue.consumer(jobs=100, renew=False) as consumer:
        yield consumer


@pytest.fixture
def putter(queue: Queue) -> Iterator[BackgroundPuts]:
    with queue.putter() as putter:
        yield putter


@pytest.fixture
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls are repeated as often as ever, with hardly a pause in between."""
    pause = SlotWait.pause

    def at_once(wait: SlotWait, found: Redirection) -> float | None:
        return None if pause(wait, found) is None else 0.0

    monkeypatch.setattr(SlotWait, "pause", at_once)
    monkeypatch.setattr(repeats, "LONGEST_PAUSE_S", 0.001)


@pytest.fixture
def proxy(private_server: EmbeddedRedis) -> Iterator[Proxy]:
    """A proxy in front of `private_server`."""
    assert private_server.tcp_url
    port = int(private_server.tcp_url.rpartition(":")[2].partition("/")[0])
    with Proxy(("127.0.0.1", port)) as proxy:
        yield proxy


@pytest.fixture
def far(proxy: Proxy, queue_name: str) -> Iterator[Queue]:
    """A queue that is reached through `proxy`."""
    with Queue(queue_name, proxy.url) as queue:
        yield queue


@pytest.fixture
def near(private_server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    """The same queue, reached directly."""
    with Queue(queue_name, private_server.url) as queue:
        yield queue


@pytest.fixture
def spread(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str
) -> Iterator[ShardedQueue]:
    """Two shards: where the table is, and on `private_server`."""
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        queue.table()
        assert queue.open(place=private_server.url, order=False) == 1
        yield queue
