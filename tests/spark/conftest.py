from collections.abc import Iterator
from typing import Any

import pytest

from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.keys import QueueKeys
from rqueue.spark.history.stream import HistoryStreamReader
from rqueue.spark.options import HistoryStream, read_options
from rqueue.spark.schemas import HISTORY
from tests.spark.reading import MakeReader


@pytest.fixture
def namespace(queue_name: str) -> str:
    return queue_name.replace("[", "-").replace("]", "")


@pytest.fixture
def keys(namespace: str) -> QueueKeys:
    return QueueKeys("q", namespace)


@pytest.fixture
def make_reader(server: EmbeddedRedis, namespace: str) -> Iterator[MakeReader]:
    made: list[HistoryStreamReader] = []

    def make(**options: Any) -> HistoryStreamReader:
        given = {"url": server.url, "namespace": namespace, "queues": "q", **options}
        parsed = read_options(HistoryStream, {name: str(text) for name, text in given.items()})
        made.append(HistoryStreamReader(parsed, HISTORY))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()
