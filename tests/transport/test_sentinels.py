"""`redis+sentinel://` everywhere, and failovers under load with real Sentinels."""

import asyncio
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from redis.sentinel import Sentinel

import rqueue
from rqueue import errors
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.inspector import Inspector
from rqueue.model.job import JobState
from rqueue.tasks.options import Options
from rqueue.transport.redis_client import open_client, url_of
from rqueue_workers.exit_codes import Exit
from tests.support.command_line import invoke
from tests.support.patience import PATIENCE
from tests.support.redis_server import Servers
from tests.support.sentinels import (
    NAME,
    PASSWORD,
    SENTINEL_PASSWORD,
    BehindSentinels,
    port_of,
    until,
)
from tests.workers.pools import Pool

NOOP = "rqueue.noop"


@pytest.fixture(scope="module")
def behind(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BehindSentinels]:
    """Shared by the tests of this file: who kills the primary brings it back."""
    made = BehindSentinels(servers, tmp_path_factory.mktemp("sentinels"))
    yield made
    made.stop()


def test_a_sentinel_url_works_everywhere(
    behind: BehindSentinels, make_pool: Callable[..., Pool]
) -> None:
    """Client, asyncio, connect, inspector, command line, pool: and one failover under them."""
    pool = make_pool(behind.url, queues=["q"], app=["rqueue.cli.noop"])

    async def ask() -> None:
        async with AsyncQueue("q", behind.url) as queue:
            job = await queue.send(NOOP)
            assert await job.result(PATIENCE) is None

    def all_work() -> None:
        with Queue("q", behind.url) as queue, queue.putter() as putter:
            assert queue.send(NOOP).result(PATIENCE) is None
            assert putter.put(NOOP).result(PATIENCE) is None
        asyncio.run(ask())
        with Inspector(behind.url) as inspector:
            assert "q" in inspector.queue_names()
        try:
            assert rqueue.connect(behind.url).at("q").counts().held == 0
        finally:
            rqueue.disconnect()
        assert invoke("--url", behind.url, "queues").output.count("q") >= 1
        assert "no problems" in invoke("--url", behind.url, "doctor").output

    all_work()
    with Queue("q", behind.url) as queue:
        queue.send(NOOP).result(PATIENCE)
        _, named_at = behind.kill_primary()
        _enqueued(queue, "after").result(PATIENCE)
        assert time.monotonic() - named_at < 20
    behind.bring_back()
    all_work()
    assert "a bug in rqueue" not in pool.log
    assert pool.log.count("Redis is gone") <= 3  # by each process, and by the supervisor, once
    assert behind.shown in pool.log
    assert pool.drained() == Exit.OK
    assert PASSWORD not in pool.log
    assert SENTINEL_PASSWORD not in pool.log


def test_messages_name_the_primary_and_the_sentinels(behind: BehindSentinels) -> None:
    primary = f"{behind.shown}, now 127.0.0.1:{port_of(behind.servers[0])}"
    with open_client(behind.url) as client:
        assert url_of(client) == behind.shown
        client.ping()
        assert url_of(client) == primary
    # a client that an application has made itself
    addresses = [("127.0.0.1", port) for port in behind.sentinel_ports]
    asking = {"password": SENTINEL_PASSWORD}
    own = Sentinel(addresses, sentinel_kwargs=asking, password=PASSWORD).master_for(NAME)
    with Queue("own", redis=own) as queue:
        assert queue.send("t").created
        assert url_of(queue.redis) == primary
        with behind.client(behind.servers[0]) as client:
            client.config_set("maxmemory", 1)
            with pytest.raises(errors.RedisOutOfMemory) as caught:
                queue.send("t")
            client.config_set("maxmemory", 0)
        assert primary in str(caught.value)
    own.close()


def test_what_sentinels_do_not_know_or_refuse(behind: BehindSentinels) -> None:
    for url, error in (
        (behind.url.replace(f"/{NAME}/", "/other/"), errors.ConnectionLost),
        (behind.url.partition("?")[0], errors.ServerError),
        (behind.url.replace(SENTINEL_PASSWORD, "wrong"), errors.ServerError),
        (behind.url.replace(PASSWORD, "wrong", 1), errors.AuthenticationFailed),
    ):
        with Queue("q", url) as queue, pytest.raises(error) as caught:
            queue.send("t")
        assert "redis+sentinel://" in str(caught.value)
        assert "<redis" not in str(caught.value)


@pytest.mark.parametrize("hosts", ["127.0.0.1:1", "127.0.0.1:1,localhost:2"])
def test_sentinels_that_are_down_are_reported_in_short(hosts: str) -> None:
    url = f"redis+sentinel://{hosts}/mymaster"
    with Queue("q", url) as queue, pytest.raises(errors.ConnectionLost) as caught:
        queue.send("t")

    async def ask() -> None:
        async with AsyncQueue("q", url) as own:
            await own.send("t")

    with pytest.raises(errors.ConnectionLost) as acaught:
        asyncio.run(ask())
    expected = f"no Sentinel answers at {hosts} ({url}/0)"
    assert str(caught.value) == str(acaught.value) == expected


def test_what_is_no_sentinel_is_reported_in_short(
    make_server: Callable[..., EmbeddedRedis],
) -> None:
    server = make_server(port=0)
    url = (server.tcp_url or "").replace("redis://", "redis+sentinel://").partition("/0")[0]
    refused = pytest.raises(errors.WrongServer, match="what answers is no Sentinel")
    with Queue("q", f"{url}/mymaster") as queue, refused:
        queue.send("t")


# -- under load ------------------------------------------------------------------------------------


def _enqueued(queue: Queue, id_: str) -> rqueue.JobHandle[object]:
    """Enqueue for as long as it takes, under one id."""
    end = time.monotonic() + 30
    pause = threading.Event()
    while True:
        try:
            return queue.send(NOOP, options=Options(id=id_))
        except errors.RedisUnavailable:
            assert time.monotonic() < end, "no primary"
            pause.wait(0.02)


class Producer(threading.Thread):
    """Enqueues without a pause. `confirmed`: ids of jobs that a replica has for certain; the others
    of `accepted` may be lost with the primary, as `docs/servers.md` says."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self.accepted: list[str] = []
        self.confirmed: list[str] = []
        self.stopping = threading.Event()
        self.problem: Exception | None = None

    def run(self) -> None:
        try:
            self._produce()
        except Exception as error:
            self.problem = error

    def _produce(self) -> None:
        with Queue("q", self._url) as queue, open_client(self._url) as client:
            while not self.stopping.is_set():
                id_ = f"job-{len(self.accepted)}"
                _enqueued(queue, id_)
                self.accepted.append(id_)
                try:
                    # written behind the job: who has this has the job too
                    with client.pipeline(transaction=False) as both:
                        both.set("confirmed", id_)
                        both.wait(1, 200)
                        replicas = both.execute()[1]
                except redis.RedisError:
                    continue
                if replicas:
                    self.confirmed.append(id_)


def fail_over(
    behind: BehindSentinels, make_pool: Callable[..., Pool], kills: int
) -> tuple[list[float], int]:
    """Kill the primary again and again under load: seconds from the Sentinels' word until a job
    that is enqueued then is done, and how many accepted jobs were lost."""
    pool = make_pool(behind.url, queues=["q"], app=["rqueue.cli.noop"], processes=2, lease="10s")
    pool.said("is ready", 2)
    with Queue("q", behind.url) as queue:
        queue.configure(keep="1h")
        producer = Producer(behind.url)
        producer.start()
        resumed = []
        for number in range(kills):
            seen = len(producer.confirmed)
            until(lambda seen=seen: len(producer.confirmed) > seen + 20, "load", 30)  # type: ignore[misc]
            _, named_at = behind.kill_primary()
            _enqueued(queue, f"probe-{number}").result(PATIENCE)
            resumed.append(time.monotonic() - named_at)
            behind.bring_back()
        producer.stopping.set()
        producer.join(30)
        assert producer.problem is None

        def drained() -> bool:
            counts = queue.counts()
            return not (counts.ready or counts.held or counts.scheduled)

        until(drained, "that all jobs are done", 40)
        states = {id_: queue.job(id_).state() for id_ in producer.accepted}
    lost = [id_ for id_, state in states.items() if state is JobState.UNKNOWN]
    assert not set(lost) & set(producer.confirmed)
    assert {states[id_] for id_ in producer.confirmed} == {JobState.DONE}
    assert "a bug in rqueue" not in pool.log
    assert pool.drained() == Exit.OK
    assert "no problems" in invoke("--url", behind.url, "doctor").output
    return resumed, len(lost)


def test_a_failover_under_load_loses_nothing_that_a_replica_has(
    behind: BehindSentinels, make_pool: Callable[..., Pool]
) -> None:
    resumed, _ = fail_over(behind, make_pool, 1)
    assert max(resumed) < 5, resumed


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("replicas", "config", "soon"),
    [
        (1, {}, 1.0),
        # until one of the others follows the new primary, that one takes no jobs
        (2, {"min-replicas-to-write": 1, "min-replicas-max-lag": 2}, 5.0),
    ],
    ids=["one replica", "min-replicas"],
)
def test_twenty_failovers_under_load(
    servers: Servers,
    tmp_path: Path,
    make_pool: Callable[..., Pool],
    replicas: int,
    config: dict[str, int],
    soon: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    behind = BehindSentinels(servers, tmp_path, replicas, **config)
    try:
        resumed, lost = fail_over(behind, make_pool, 20)
    finally:
        behind.stop()
    with capsys.disabled():
        print(
            f"\n20 failovers by Sentinels: work resumed {statistics.median(resumed):.2f} s after"
            f" the promotion (at most {max(resumed):.2f}); {lost} jobs lost that no replica had"
        )
    assert statistics.median(resumed) <= soon, resumed
