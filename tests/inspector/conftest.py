from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor, Inspector
from rqueue.settings import Settings
from tests.support.deployments import CLUSTER, EVERYWHERE, WholeCluster
from tests.support.redis_server import Servers


@pytest.fixture
def settings() -> Settings:
    return Settings()


@pytest.fixture(params=EVERYWHERE)
def deployment(request: pytest.FixtureRequest) -> str:
    """See `tests.support.deployments`."""
    found: str = request.param
    return found


@pytest.fixture
def server(
    deployment: str, request: pytest.FixtureRequest, servers: Servers, server_name: str
) -> Any:
    """One server, or a cluster in its place."""
    if deployment == CLUSTER:
        return WholeCluster(request.getfixturevalue("redis_cluster"))
    return servers.get(server_name)


@pytest.fixture
def client(server: Any) -> Iterator[redis.Redis]:
    if isinstance(server, WholeCluster):
        with server.cluster.client() as nodes:
            yield cast("redis.Redis", nodes)
    else:
        with redis.Redis.from_url(server.url) as one:
            yield one


@pytest.fixture
def queue(client: redis.Redis, queue_name: str, settings: Settings) -> Iterator[Queue]:
    with Queue(queue_name, redis=client, settings=settings) as queue:
        yield queue
    keys = list(client.scan_iter(match=queue.keys.base.replace("[", "\\[") + "*", count=1000))
    if keys:
        client.unlink(*keys)


@pytest.fixture
def inspector(client: redis.Redis, settings: Settings) -> Inspector:
    return Inspector(redis=client, settings=settings)


@pytest.fixture
def consumer(queue: Queue) -> Iterator[Callable[..., Consumer]]:
    """Makes registered consumers, which are closed at the end."""
    made: list[Consumer] = []

    def make(**options: object) -> Consumer:
        options.setdefault("renew", False)
        made.append(queue.consumer(**options).register())  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def doctor(client: redis.Redis) -> Doctor:
    return Doctor(client, "rqueue", wait=lambda _seconds: None)


@pytest.fixture
def base(queue: Queue) -> str:
    return queue.keys.base
