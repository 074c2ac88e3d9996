"""The address of something else than the server that keeps the jobs: one line says so."""

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

import rqueue
from rqueue import errors
from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.settings import Settings
from rqueue.transport import server_check
from rqueue.transport.redis_client import open_client, url_of
from rqueue_workers.exit_codes import Exit
from tests.support.command_line import invoke
from tests.support.ports import free_port
from tests.support.redis_cluster import SmallCluster
from tests.support.stub_server import Refusing, StubServer
from tests.workers.children import WorkerFixture, eventually
from tests.workers.pools import Pool

MakeServer = Callable[..., EmbeddedRedis]


@pytest.fixture(params=["cluster", "sentinel", "database", "password", "tls"])
def wrong(
    request: pytest.FixtureRequest, make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, type[errors.ServerError], str]:
    """A URL, the error that it ends in, and words of its text."""
    monkeypatch.setenv("RQUEUE_CONNECT_TIMEOUT", "0.5s")
    if request.param == "cluster":
        config = {"cluster-enabled": "yes", "cluster-port": free_port()}
        server = make_server(port=0, config=config)
        return _url(server), errors.WrongServer, "redis+cluster://HOST:PORT"
    if request.param == "sentinel":
        stub = request.getfixturevalue("sentinel_stub")
        return stub.url, errors.WrongServer, "redis+sentinel://HOST:PORT/NAME"
    if request.param == "password":
        server = make_server(port=0, config={"requirepass": "secret"})
        return _url(server), errors.AuthenticationFailed, "wants a password, and the URL has none"
    server = make_server(port=0)
    if request.param == "database":
        url = _url(server).replace("/0", "/99")
        return url, errors.WrongServer, "no database of the number in the URL"
    return _url(server).replace("redis:", "rediss:"), errors.RedisTimeout, "speak TLS"


def _url(server: EmbeddedRedis) -> str:
    assert server.tcp_url
    return server.tcp_url


@pytest.fixture
def sentinel_stub(request: pytest.FixtureRequest) -> StubServer:
    """A real one needs a configuration that it may write; what it says of itself is enough."""
    stub = StubServer(b"-ERR unknown command 'EVALSHA', with args beginning with: \r\n")
    stub.mode = "sentinel"
    stub.info = "redis_version:7.0.15\r\nredis_mode:sentinel\r\n"
    request.addfinalizer(lambda: stub.__exit__(None, None, None))
    return stub.__enter__()


Wrong = tuple[str, type[errors.ServerError], str]


def test_the_client_says_so(wrong: Wrong) -> None:
    url, error, words = wrong
    with Queue("q", url) as queue, pytest.raises(error, match=re.escape(words)) as caught:
        queue.send("t")
    assert not caught.value.outcome_unknown
    assert url in str(caught.value)


def test_the_asyncio_client_says_so(wrong: Wrong) -> None:
    url, error, words = wrong

    async def work() -> None:
        async with AsyncQueue("q", url) as queue:
            with pytest.raises(error) as caught:
                await queue.send("t")
            # a handshake that is not answered ends without a word about TLS there
            assert words in str(caught.value) or error is errors.RedisTimeout

    asyncio.run(work())


def test_connect_says_so(wrong: Wrong) -> None:
    url, error, words = wrong
    try:
        with pytest.raises(error, match=re.escape(words)):
            rqueue.connect(url)
    finally:
        rqueue.disconnect()


@pytest.mark.parametrize("command", ["queues", "doctor", "stats", "enqueue x.y"])
def test_the_command_line_says_so(wrong: Wrong, command: str) -> None:
    url, _, words = wrong
    said = invoke("--url", url, *command.split(), code=4).output
    assert words in said
    assert len(said.splitlines()) == 1


def test_a_pool_ends_with_that(wrong: Wrong, make_pool: Callable[..., Pool]) -> None:
    url, _, words = wrong
    pool = make_pool(url, patience=0.1)
    assert pool.ended() == Exit.REDIS
    assert words in pool.log.splitlines()[-1]


# -- replicas --------------------------------------------------------------------------------------


@pytest.fixture
def replica(make_server: MakeServer) -> EmbeddedRedis:
    server = make_server(port=0)
    with redis.Redis.from_url(server.url) as client:
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
    return server


def test_a_replica_is_no_server_for_jobs(
    replica: EmbeddedRedis, make_pool: Callable[..., Pool]
) -> None:
    url = _url(replica)
    with Queue("q", url) as queue, pytest.raises(errors.RedisReadOnly, match="primary's address"):
        queue.send("t")
    try:
        with pytest.raises(errors.RedisReadOnly, match="is a replica"):
            rqueue.connect(url)
    finally:
        rqueue.disconnect()
    for command in ("queues", "stats", "enqueue x.y"):
        said = invoke("--url", url, *command.split(), code=4).output
        assert "is a replica and takes no jobs" in said
        assert len(said.splitlines()) == 1
    assert "is a replica" in " ".join(invoke("--url", url, "doctor", code=1).output.split())
    pool = make_pool(url, patience=0.1)
    assert pool.ended() == Exit.REDIS
    assert "is a replica and takes no jobs" in pool.log.splitlines()[-1]


def test_a_pool_waits_for_a_replica_to_be_promoted(
    replica: EmbeddedRedis, make_pool: Callable[..., Pool]
) -> None:
    pool = make_pool(_url(replica), patience=20)
    pool.said("is a replica")
    with redis.Redis.from_url(replica.url) as client:
        client.execute_command("REPLICAOF", "NO", "ONE")
    pool.said("is ready")
    assert pool.drained() == Exit.OK


# -- a server that loads, and one that drops ------------------------------------------------------


def test_a_pool_does_not_judge_a_server_that_loads(make_pool: Callable[..., Pool]) -> None:
    """It says meanwhile that it keeps no append-only file, although it does."""
    with StubServer() as stub:
        stub.info = "redis_version:7.0.15\r\nloading:1\r\naof_enabled:0\r\n"
        pool = make_pool(stub.url, patience=0.1)
        pool.said("still loads its data; waiting")
        stub.info = "redis_version:7.0.15\r\nloading:0\r\naof_enabled:1\r\n"
        stub.reply = b"-NOPERM No permissions to access a key\r\n"
        assert pool.ended() == Exit.REDIS
        assert "keeps no append-only file" not in pool.log


def test_results_may_go_and_jobs_may_not(
    make_server: MakeServer, make_pool: Callable[..., Pool], caplog: pytest.LogCaptureFixture
) -> None:
    server = make_server(config={"maxmemory-policy": "volatile-lru"})
    pool = make_pool(server.url)
    pool.said("is ready")
    assert pool.log.count("but no job") == 1
    assert pool.drained() == Exit.OK
    server_check._seen.discard(server.url)
    with caplog.at_level(logging.WARNING, "rqueue"), Queue("q", server.url) as queue:
        queue.send("t")
        queue.send("t")
    assert caplog.text.count("but no job") == 1
    said = invoke("--url", server.url, "doctor", "--json").output
    findings = json.loads(said)["findings"]
    assert [one["severity"] for one in findings if "volatile" in one["says"]] == ["note"]
    assert "provider's parameter group" in said


def test_a_server_that_may_evict_jobs_is_refused(
    make_server: MakeServer, make_pool: Callable[..., Pool]
) -> None:
    pool = make_pool(make_server(config={"maxmemory-policy": "allkeys-lru"}).url)
    assert pool.ended() == Exit.REDIS
    assert "provider's parameter group" in pool.log.splitlines()[-1]


# -- two queues that one command cannot wait for ---------------------------------------------------


def test_a_listener_that_is_refused_ends_the_pool(
    make_pool: Callable[..., Pool], private_server: EmbeddedRedis
) -> None:
    """A cluster that hides behind one address refuses a wait for two queues in two slots."""
    with Refusing(_url(private_server), b"BLPOP", b"-CROSSSLOT Keys don't hash\r\n") as front:
        pool = make_pool(front.url, queues=["a", "b"])
        assert pool.ended() == Exit.REDIS
        assert "a node of a Redis Cluster" in pool.log.splitlines()[-1]
        assert front.refused < 20


# -- addresses -------------------------------------------------------------------------------------


def test_valkey_is_another_name(private_server: EmbeddedRedis) -> None:
    url = _url(private_server).replace("redis://", "valkey://")
    with Queue("q", url) as queue:
        assert queue.send("t").created
    with open_client("valkeys://h:1/2") as client:
        assert url_of(client) == "rediss://h:1/2"


def test_the_address_that_hosts_set_counts_last() -> None:
    assert Settings.load({"REDIS_URL": "redis://a"}).url == "redis://a"
    assert Settings.load({"REDIS_URL": "redis://a", "RQUEUE_URL": "redis://b"}).url == "redis://b"
    with pytest.raises(errors.ConfigError, match=r"^REDIS_URL: "):
        Settings.load({"REDIS_URL": "http://a"})


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("cluster://a:1", "must begin with redis+cluster://"),
        ("redis://a..b:1/0", "names no host: 'a..b'"),
        (f"redis://{'a' * 64}.com/0", f"names no host: '{'a' * 64}.com'"),
        ("redis://\udcff/0", "names no host: "),
        ("redis+cluster://a,b..c:1", "names a node that is no host name: 'b..c'"),
        ("redis+sentinel://a..b/m", "names a Sentinel that is no host name: 'a..b'"),
        ("redis://a:1?cluster=true", "write redis+cluster://HOST:PORT instead"),
        ("redis+cluster://a:1/1", "a cluster has number 0 alone"),
        ("redis+cluster://a:1?db=1", "a cluster has number 0 alone"),
        ("redis+cluster://a:x", "has a node with no port number"),
        ("redis+cluster://", "names a node without a host"),
        ("redis+cluster://a,,b", "names a node without a host"),
        ("rediss+cluster://a/0?wrong=1", "option that is not known: 'wrong'"),
        ("sentinel://a:1/m", "must begin with redis+sentinel://"),
        ("redis+sentinel://a:1", "names no primary"),
        ("redis+sentinel://a:x/m", "no port number"),
        ("redis+sentinel://:1/m", "without a host"),
        ("redis+sentinel://a/m/x", "number of a database"),
        ("redis+sentinel://a/m?sentinel_pasword=x", "sentinel_pasword"),
        ("redis://a:1,b:2/0", "several hosts"),
    ],
)
def test_an_address_that_is_none(url: str, words: str) -> None:
    with pytest.raises(errors.ConfigError, match=re.escape(words)):
        Queue("q", url)


# -- a listener that is refused --------------------------------------------------------------------


@pytest.mark.parametrize("queues", [1, 2])
def test_a_worker_that_may_not_wait_for_wake_ups_ends(
    private_server: EmbeddedRedis, queue_name: str, tmp_path: Path, queues: int
) -> None:
    with Refusing(_url(private_server), b"BLPOP", b"-CROSSSLOT Keys don't hash\r\n") as front:
        workers = WorkerFixture(front.url, queue_name, tmp_path)
        try:
            names = tuple(f"{queue_name}-{number}" for number in range(queues))
            child = workers.child(queues=names, ready=False)
            assert child.wait() == Exit.REDIS
            assert front.refused <= 2
        finally:
            workers.close()


@pytest.mark.parametrize("reply", [b"-BUSY a script\r\n", b"-LOADING its data\r\n"])
def test_a_worker_whose_wait_is_refused_for_now_tries_again_with_pauses(
    private_server: EmbeddedRedis, queue_name: str, tmp_path: Path, reply: bytes
) -> None:
    with Refusing(_url(private_server), b"BLPOP", reply) as front:
        workers = WorkerFixture(front.url, queue_name, tmp_path)
        try:
            child = workers.child()
            eventually(lambda: front.refused >= 2, "two tries")
            workers.result("c.echo", 1)
            first, began = front.refused, time.monotonic()
            eventually(lambda: time.monotonic() - began > 1, "a second")
            assert front.refused - first < 20
            assert child.log.count("Redis is gone") == 1
        finally:
            workers.close()


def test_a_client_of_a_whole_cluster_is_no_mistake(redis_cluster: SmallCluster) -> None:
    with redis_cluster.client() as client:
        facts = server_check.server_facts(client)
        assert (facts.problem, facts.replica) == (None, None)
        assert url_of(client).startswith("redis+cluster://127.0.0.1:")
