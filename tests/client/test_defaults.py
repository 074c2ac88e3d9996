"""Tasks that name no sender: RQUEUE_URL is enough, and what one may say instead."""

import asyncio
import gc
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio

import rqueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, ConnectionLost
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from tests.support.patience import PATIENCE
from tests.support.pulling import pull_one

registry = Registry()


@task(name="add", registry=registry)
def add(a: int, b: int = 0) -> int:
    return a + b


def at(queue: str) -> Any:
    return add.options(queue=queue)


def test_the_environment_is_enough(
    no_defaults: Any, server: EmbeddedRedis, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RQUEUE_URL", server.url)
    handle = at(queue_name).enqueue(1, b=2)
    with rqueue.queue(queue_name).consumer(renew=False) as consumer:
        consumer.ack(pull_one(consumer), 3)
    assert handle.result(PATIENCE) == 3
    assert rqueue.queue(queue_name) is rqueue.queue(queue_name)
    assert rqueue.queue().name == "default"
    assert rqueue.queue().redis is rqueue.queue(queue_name).redis


def test_without_anything_the_error_says_what_to_set(
    no_defaults: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"set RQUEUE_URL=.*rqueue\.configure.*rqueue dev"):
        add.enqueue(1)
    with pytest.raises(ConfigError, match="RQUEUE_URL"):
        asyncio.run(add.aenqueue(1))
    with pytest.raises(ConfigError, match="RQUEUE_URL"):
        rqueue.Queue("q")
    with pytest.raises(ConfigError, match="RQUEUE_URL"):
        rqueue.AsyncQueue("q")


def test_the_development_server_of_the_folder(
    no_defaults: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with EmbeddedRedis(tmp_path / ".rqueue") as dev:
        at("q").enqueue(1)
        assert rqueue.queue("q").settings.url == dev.url
        with rqueue.Queue("q") as queue:
            assert queue.counts().ready == 1
        assert asyncio.run(_aenqueue("q")).created
    rqueue.disconnect()
    with pytest.raises(ConfigError):
        at("q").enqueue(1)


async def _aenqueue(queue: str) -> Any:
    return await at(queue).aenqueue(1)


def test_configure_and_connect(
    no_defaults: Any, server: EmbeddedRedis, queue_name: str, proxy: Any
) -> None:
    rqueue.configure(server.url, namespace="shop", signing_keys={"k": "s" * 16})
    at(queue_name).enqueue(1)
    queue = rqueue.queue(queue_name)
    assert queue.keys.namespace == "shop"
    with queue.consumer(mode="browse", renew=False) as browser:
        assert browser.pull()[0].body.startswith(b"Sk.")

    found = rqueue.connect(proxy.url)
    assert (found.name, rqueue.queue()) == ("default", found)
    assert rqueue.queue(queue_name) is not queue
    proxy.refuse()
    with pytest.raises(ConnectionLost):
        rqueue.connect(proxy.url)
    with pytest.raises(ConfigError):
        rqueue.configure("http://nonsense")


def test_clients_of_ones_own(no_defaults: Any, server: EmbeddedRedis, queue_name: str) -> None:
    with redis.Redis.from_url(server.url) as client:
        rqueue.configure(redis=client)
        at(queue_name).enqueue(1)
        assert rqueue.queue(queue_name).redis is client
        with pytest.raises(ConfigError, match="async_redis"):
            asyncio.run(_aenqueue(queue_name))
        rqueue.disconnect()
        assert client.ping()  # not ours to close

    async def main() -> None:
        async with redis.asyncio.Redis.from_url(server.url) as client:
            rqueue.configure(async_redis=client, url=server.url)
            assert rqueue.aqueue().redis is client
            await _aenqueue(queue_name)

    asyncio.run(main())
    rqueue.configure(server.url)
    assert rqueue.queue(queue_name).counts().ready == 2
    with (
        redis.Redis.from_url(server.url, decode_responses=True) as wrong,
        pytest.raises(ConfigError, match="decode_responses"),
    ):
        rqueue.configure(redis=wrong)


def test_one_client_per_event_loop_closed_with_it(
    no_defaults: Any, server: EmbeddedRedis, queue_name: str
) -> None:
    rqueue.configure(server.url)
    seen = []

    async def main() -> None:
        await _aenqueue(queue_name)
        seen.append(rqueue.aqueue(queue_name))
        assert rqueue.aqueue(queue_name) is seen[-1]
        assert len(no_defaults._async_roots) == 1
        rqueue.disconnect()  # the running loop opens new connections
        await _aenqueue(queue_name)
        assert rqueue.aqueue(queue_name) is not seen[-1]

    for _ in range(2):
        asyncio.run(main())
        assert not no_defaults._async_roots
        assert not no_defaults._keepers
        gc.collect()  # a connection left open would be a ResourceWarning, that is an error here
    assert seen[0] is not seen[1]
    assert rqueue.queue(queue_name).counts().ready == 4
    with pytest.raises(RuntimeError):
        rqueue.aqueue()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(_aenqueue(queue_name))
    (root,) = no_defaults._async_roots.values()
    loop.run_until_complete(root.close())
    loop.close()  # without finishing its generators
    asyncio.run(main())
    assert not no_defaults._keepers


@pytest.mark.parametrize(
    "first", ["import rqueue", "from rqueue import client", "import rqueue.tasks.task"]
)
def test_in_a_program(server: EmbeddedRedis, queue_name: str, first: str) -> None:
    program = first + textwrap.dedent(
        f"""
        import asyncio, sys
        from rqueue import task
        @task(name="add", queue={queue_name!r})
        def add(a: int, b: int) -> int:
            return a + b
        assert add(1, 2) == 3
        print(add.enqueue(1, 2).created)
        print(asyncio.run(add.aenqueue(1, 2)).created)
        """
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"RQUEUE_URL": server.url, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True\nTrue\n", "")


def test_after_a_fork_both_sides_go_on(
    no_defaults: Any, server: EmbeddedRedis, queue_name: str, request: pytest.FixtureRequest
) -> None:
    import os

    rqueue.configure(server.url)
    at(queue_name).enqueue(1)
    child = os.fork()
    if child == 0:
        try:
            at(queue_name).enqueue(2)
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    at(queue_name).enqueue(3)
    assert rqueue.queue(queue_name).counts().ready == 3


def test_old_servers_are_refused_by_connect(
    no_defaults: Any, server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rqueue.transport.server_check.OLDEST", (99, 0))
    with pytest.raises(rqueue.ServerError, match="too old"):
        rqueue.connect(server.url)
