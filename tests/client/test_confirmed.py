"""Confirmed enqueues: they return when replicas have the jobs, or the disk; else they say so."""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import redis

import rqueue
from rqueue import Call, Options, errors
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.settings import Settings
from rqueue.transport import server_check
from rqueue.transport.redis_client import url_of
from tests.support.command_line import invoke
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.redis_server import OLDEST_NAME, Servers
from tests.support.replicas import WithReplica, blocked
from tests.support.sentinels import until
from tests.support.stub_server import StubServer

SOON = 100
"""Ms after which a stopped replica is not waited for any longer."""


@pytest.fixture(scope="module", params=[OLDEST_NAME, "newest"])
def pair(request: pytest.FixtureRequest, servers: Servers) -> Iterator[WithReplica]:
    pair = WithReplica(servers, request.param)
    yield pair
    pair.stop()


@pytest.fixture
def queue(pair: WithReplica, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, pair.url) as queue:
        yield queue


def options(id: str, within: int = 10_000) -> Options:
    return Options(id=id, replicas=1, confirm_ms=within)


def one(queue: Queue, within: int) -> object:
    return queue.send("t", options=options("a", within))


def many(queue: Queue, within: int) -> object:
    return queue.enqueue_many([Call("t", options=options(id_, within)) for id_ in ("a", "b")])


def transaction(queue: Queue, within: int) -> None:
    with queue.transaction() as transaction:
        transaction.send("t", options=options("a", within))
        transaction.send("t", options=Options(id="b"))


def settling(queue: Queue, within: int) -> None:
    queue.send("t", options=Options(id="first"))
    with queue.consumer(name="c") as consumer:
        jobs = consumer.pull()
        with queue.transaction(consumer) as transaction:
            transaction.ack(*jobs)
            transaction.send("t", options=options("a", within))


def workflow(queue: Queue, within: int) -> object:
    task = rqueue.task(name="t", registry=rqueue.Registry())(lambda: None)
    settings = Settings(url=queue.settings.url, replicas=1, confirm_ms=within)
    with Queue(queue.name, settings=settings) as confirming:
        return confirming.enqueue_workflow(rqueue.group(task.s()), id="g")


def packed(queue: Queue, within: int) -> object:
    settings = Settings(url=queue.settings.url, replicas=1, confirm_ms=within)
    with Queue(queue.name, settings=settings) as confirming:
        return confirming.enqueue_puts([rqueue.Put("a", b'["t"]')])


def from_asyncio(queue: Queue, within: int) -> None:
    async def work() -> None:
        async with AsyncQueue(queue.name, queue.settings.url) as same:
            calls = [Call("t", options=options(id_, within)) for id_ in ("a", "b")]
            await same.enqueue_many(calls)
            await same.send("t", options=options("c", within))

    asyncio.run(work())


WAYS: list[Callable[[Queue, int], object]] = [
    *(one, many, transaction, settling, workflow, packed, from_asyncio),
]


@pytest.mark.parametrize("way", WAYS)
def test_when_it_returns_the_replica_has_the_jobs(
    queue: Queue, pair: WithReplica, way: Callable[[Queue, int], object]
) -> None:
    way(queue, 10_000)
    assert pair.replica.hgetall(queue.keys.jobs) == pair.primary.hgetall(queue.keys.jobs) != {}


@pytest.mark.parametrize("way", WAYS)
def test_jobs_that_no_replica_confirms_are_stored_and_their_ids_are_said(
    queue: Queue, pair: WithReplica, way: Callable[[Queue, int], object]
) -> None:
    said = "0 of 1 replicas confirmed that within 100"
    with pair.stopped(), pytest.raises(errors.NotConfirmed, match=said):
        way(queue, SOON)
    stored = {id_.decode() for id_ in pair.primary.hkeys(queue.keys.jobs)}
    assert stored
    queue.cancel_all()


def test_the_same_id_again_is_waited_for_too_whoever_stored_it(
    queue: Queue, pair: WithReplica
) -> None:
    """Its step changes nothing: newer servers answer a wait behind it at once, whatever the
    replicas have."""
    with pair.stopped():
        with pytest.raises(errors.NotConfirmed) as caught:
            one(queue, SOON)
        assert caught.value.ids == ("a",)
        assert (caught.value.replicas, caught.value.wanted) == (0, 1)
        for again in (one, many, transaction, from_asyncio):
            with Queue(queue.name, pair.url) as other, pytest.raises(errors.NotConfirmed):
                again(other, SOON)
    handle = queue.send("t", options=options("a"))
    assert not handle.created
    assert pair.replica.hexists(queue.keys.jobs, "a")
    until(lambda: not pair.primary.exists(queue.keys.base + "confirm"), "that nothing is left")


@pytest.mark.parametrize("way", [one, many, transaction])
def test_the_wait_is_sent_in_the_packet_of_the_jobs(
    queue: Queue, pair: WithReplica, way: Callable[[Queue, int], object]
) -> None:
    host, _, port = pair.url.removeprefix("redis://").partition("/")[0].partition(":")
    with (
        Proxy((host, int(port))) as proxy,
        Queue(queue.name, proxy.url) as same,
        ThreadPoolExecutor(1) as thread,
    ):
        thread.submit(same.send, "t", options=options("warm")).result(PATIENCE)
        with pair.stopped():
            proxy.hold()  # the answer about the jobs does not arrive
            sent = thread.submit(way, same, 10_000)
            try:
                until(lambda: blocked(pair.primary), "that the server waits for its replica")
            finally:
                proxy.release()
        sent.result(PATIENCE)


def test_a_lost_answer_is_asked_for_again_and_the_job_stays_one(
    queue: Queue, pair: WithReplica
) -> None:
    host, _, port = pair.url.removeprefix("redis://").partition("/")[0].partition(":")
    with Proxy((host, int(port))) as proxy, Queue(queue.name, proxy.url) as same:
        same.send("t", options=options("warm"))
        for after in (0, 20, 40, 42):  # the last ones are in the middle of the second answer
            proxy.cut_reply(after)
            handle = same.send("t", options=Options(replicas=1, confirm_ms=10_000))
            assert handle.created
            assert pair.replica.hexists(queue.keys.jobs, handle.id)
        with pair.stopped():
            proxy.swallow_reply()
            with pytest.raises(errors.NotConfirmed):
                same.send("t", options=options("lost", SOON))
    assert queue.counts().ready == 6


def test_background_puts_are_sent_again_until_they_are_confirmed(
    queue: Queue, pair: WithReplica
) -> None:
    with queue.putter() as putter:
        with pair.stopped():
            handle = putter.put_call(Call("t", options=options("a", 20)))
            assert not handle.wait_stored(0.1)
        assert handle.wait_stored(PATIENCE)
        assert pair.replica.hexists(queue.keys.jobs, "a")
    assert queue.counts().ready == 1

    async def work() -> None:
        async with AsyncQueue(queue.name, pair.url) as same, same.putter() as putter:
            with pair.stopped():
                handle = await putter.put_call(Call("t", options=options("b", 20)))
                assert not await handle.wait_stored(0.1)
            assert await handle.wait_stored(PATIENCE)

    asyncio.run(work())
    assert queue.counts().ready == 2


def test_what_the_server_cannot_confirm_is_refused_at_once(
    pair: WithReplica, queue: Queue, servers: Servers
) -> None:
    with pytest.raises(errors.RedisReadOnly, match="by 2 replicas, and the server has 1"):
        queue.send("t", options=Options(replicas=2, confirm_ms=14_000))
    with pytest.raises(errors.ConfigError, match="15000 ms is not below the time"):
        queue.send("t", options=Options(replicas=1, confirm_ms=15_000))
    if pair.servers[0].binary.version < (7, 2, 0):
        with pytest.raises(errors.ConfigError, match=r"is Redis 6\.2, which does not say"):
            queue.send("t", options=Options(fsync=True))
    else:
        pair.primary.config_set("appendonly", "no")
        try:
            with pytest.raises(errors.ConfigError, match="no append-only file"):
                queue.send("t", options=Options(fsync=True))
        finally:
            pair.primary.config_set("appendonly", "yes")
    assert queue.counts().ready == 0


def test_a_login_that_may_not_wait_is_told_so(queue: Queue, pair: WithReplica) -> None:
    pair.primary.execute_command(
        *["ACL", "SETUSER", "noisy", "on", ">secret", "~*", "+@all", "-wait"]
    )
    url = pair.url.replace("redis://", "redis://noisy:secret@")
    with Queue(queue.name, url) as same:
        with pytest.raises(errors.NotConfirmed, match=r"is stored .* give it \+wait"):
            same.send("t", options=options("a"))
        with same.putter(on_error=lambda _error, _puts: None) as putter:
            handle = putter.put_call(Call("t", options=options("b")))
            with pytest.raises(errors.NotConfirmed, match=r"give it \+wait"):
                handle.wait_stored(PATIENCE)
    assert queue.counts().ready == 2


def test_a_primary_that_is_demoted_meanwhile_leaves_it_open(
    queue: Queue, pair: WithReplica
) -> None:
    queue.send("t", options=options("warm"))
    try:
        with pair.stopped(), ThreadPoolExecutor() as threads:
            sent = threads.submit(one, queue, 10_000)
            until(lambda: blocked(pair.primary), "that the server waits for its replica")
            pair.primary.execute_command("REPLICAOF", "127.0.0.1", 1)
            with pytest.raises(errors.RedisUnavailable) as caught:
                sent.result(PATIENCE)
            assert caught.value.outcome_unknown
    finally:
        pair.attach()


def test_on_disk(servers: Servers, queue_name: str) -> None:
    """With an fsync each second the enqueue waits for it; the file has the job then."""
    pair = WithReplica(servers, "newest", appendfsync="everysec")
    try:
        with Queue(queue_name, pair.url) as queue:
            queue.send("t", options=Options(id="local", fsync=True, confirm_ms=14_000))
            queue.send("t", options=Options(id="both", fsync=True, replicas=1, confirm_ms=14_000))
            for server, ids in zip(pair.servers, ([b"local", b"both"], [b"both"]), strict=True):
                folder = Path(server.directory, "appendonlydir")
                files = b"".join(path.read_bytes() for path in folder.iterdir())
                assert all(id_ in files for id_ in ids)
            pair.replica.config_set("appendonly", "no")
            with pytest.raises(errors.NotConfirmed) as caught:
                queue.send("t", options=Options(fsync=True, replicas=1, confirm_ms=2_000))
            assert "0 of 1 replicas confirmed that it is on disk" in str(caught.value)
            assert caught.value.on_disk
    finally:
        pair.stop()


def test_the_command_line(pair: WithReplica, queue: Queue) -> None:
    words = ["enqueue", "app.t", "-q", queue.name, "--id", "a", "--url", pair.url]
    invoke(*words, "--replicas", "1", "--confirm", "10s")
    with pair.stopped():
        done = invoke(*words, "--replicas", "1", "--confirm", "100ms", code=1)
    assert "job 'a' is stored" in done.output


def test_a_plain_enqueue_sends_what_it_always_did(monkeypatch: pytest.MonkeyPatch) -> None:
    with StubServer(b"*4\r\n:1\r\n:1\r\n*0\r\n$0\r\n\r\n") as stub, Queue("q", stub.url) as queue:
        monkeypatch.setattr(server_check, "_seen", {url_of(queue.redis)})
        queue.send("t", options=Options(confirm_ms=5))
        queue.enqueue_many([Call("t")])
        sent = [command[0] for command in stub.commands if command[0] != b"HELLO"]
    assert [name for name in sent if name not in (b"CLIENT", b"SELECT")] == [b"EVALSHA"] * 2


def test_settings_and_options_say_what_confirms() -> None:
    settings = Settings.load(
        {"RQUEUE_REPLICAS": "2", "RQUEUE_FSYNC": "yes", "RQUEUE_CONFIRM": "2s"}
    )
    assert (settings.replicas, settings.fsync, settings.confirm_ms) == (2, True, 2000)
    packer = Queue("q", settings=settings, redis=redis.Redis())._packer
    assert packer.confirmation() == (2, True, 2000)
    assert packer.confirmation(Options(replicas=0, fsync=False)) is None
    assert packer.confirmation(Options(replicas=1, confirm_ms=7)) == (1, True, 7)
    for wrong in ({"replicas": -1}, {"replicas": True}, {"fsync": 1}, {"confirm_ms": 0}):
        with pytest.raises(errors.ConfigError):
            Options(**wrong)  # type: ignore[arg-type]
    with pytest.raises(errors.ConfigError, match="RQUEUE_FSYNC"):
        Settings.load({"RQUEUE_FSYNC": "perhaps"})


def test_in_memory_all_is_confirmed() -> None:
    with Queue("q", f"memory://confirmed-{os.getpid()}") as queue:
        assert queue.send("t", options=Options(replicas=3, fsync=True)).created
        assert not queue.send("t", options=Options(id="x", fsync=True)).conflict
