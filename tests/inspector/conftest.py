from collections.abc import Callable, Iterator

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor, Inspector
from rqueue.settings import Settings
from tests.support.deployments import deployed_client, deployed_server, deployment  # noqa: F401


@pytest.fixture
def settings() -> Settings:
    return Settings()


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
