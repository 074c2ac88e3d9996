import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from click.testing import Result

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.settings import Settings
from tests.support.command_line import invoke, program
from tests.support.deployments import deployed_client, deployed_server, deployment  # noqa: F401


@pytest.fixture(autouse=True)
def away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without a development server, and no URL in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("RQUEUE_"):
            monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def queue(client: redis.Redis, server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, redis=client, settings=Settings(url=server.url)) as queue:
        yield queue
    keys = list(client.scan_iter(match=queue.keys.base + "*", count=1000))
    if keys:
        client.unlink(*keys)


@pytest.fixture
def consumer(queue: Queue) -> Iterator[Callable[..., Consumer]]:
    made: list[Consumer] = []

    def make(**options: Any) -> Consumer:
        made.append(queue.consumer(**{"renew": False, **options}).register())
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def run(server: EmbeddedRedis) -> Callable[..., Result]:
    """Runs a command line in this process, on the shared server. Nothing is a terminal there."""

    def call(*args: str, url: str | None = "", code: int = 0, **more: Any) -> Result:
        given = [] if url is None else ["--url", url or server.url]
        return invoke(*given, *args, code=code, **more)

    return call


@pytest.fixture
def read(run: Callable[..., Result]) -> Callable[..., Any]:
    """Runs a command line with --json and returns its document."""

    def call(*args: str, **more: Any) -> Any:
        return json.loads(run(*args, "--json", **more).stdout)

    return call


@pytest.fixture
def command() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the true command in a process of its own."""

    return program
