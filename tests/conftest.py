import gc
import os
import re
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from rqueue.embedded.server import EmbeddedRedis
from rqueue.transport.redis_client import is_cluster
from tests.support import parallel, profiles
from tests.support import spark as spark_support
from tests.support.redis_cluster import (  # noqa: F401
    make_cluster,
    redis_cluster,
    replicated_cluster,
)
from tests.support.redis_server import OLDEST_NAME, MissingServer, Servers, binaries, chosen
from tests.support.spark import cluster_spark, spark, sparks  # noqa: F401

# Who keeps Python from writing .pyc files has every program that tests start compile rqueue anew:
# two thirds of a second for a pool, hundreds of times.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What passes once passes again, however busy the machine is: the same examples each time, and no
# example fails because it took long. `RQUEUE_TEST_PROFILE=thorough` searches elsewhere each time.
settings.register_profile(
    "rqueue",
    max_examples=profiles.examples(50, 100, brief=25),
    deadline=None,
    derandomize=not profiles.THOROUGH,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("rqueue")

# Hypothesis draws constants, now and then, that it finds in all sources of the project: each line
# of rqueue would change what its searches try, and to find them takes each process seconds.
if not profiles.THOROUGH and hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C reach the programs that tests start: a shell's background job begins with SIGINT
    ignored, and its children inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if parallel.distributed(config):
        parallel.say_less(config)


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """What a test leaves in the environment is no setting of the next one: a worker that is played
    in this process says there where its pool is, as it may."""
    before = _rqueue_s()
    yield
    if (after := _rqueue_s()) != before:
        for name in after:
            del os.environb[name]
        os.environb.update(before)


def _rqueue_s() -> dict[bytes, bytes]:
    """The variables of rqueue."""
    return {name: os.environb[name] for name in os.environb if name.startswith(b"RQUEUE_")}


def pytest_report_header() -> list[str]:
    return [f"server {name}: {binary}" for name, binary in sorted(binaries().items())]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marked = metafunc.definition.get_closest_marker("each_server")
    # A mark on a whole file also meets tests that need no server: those run once.
    if marked and chosen() is None and "server_name" in metafunc.fixturenames:
        long = [pytest.mark.long] if marked.kwargs.get("oldest_if_long") else []
        oldest = pytest.param(OLDEST_NAME, marks=long)
        metafunc.parametrize("server_name", [oldest, "newest"])
    spark_support.parametrize(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Collected modules and tests stay until the process ends: to look, again and again, for what
    of them could be freed takes a quarter of the collection, and some of the run."""
    if not session.config.pluginmanager.has_plugin("dsession"):  # who deals them collects nothing
        gc.disable()
    if parallel.distributed(session.config):
        parallel.compile_share(session.config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    spark_support.prepare(items)
    parallel.check(items)
    if parallel.distributed(config):
        parallel.sort(items)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    return parallel.processes(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return parallel.scheduler(config, log)


@pytest.fixture
def server_name() -> str:
    """The server to test on; see tests/support/redis_server.py."""
    return chosen() or "newest"


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The servers of this machine, for tests that need more than one or one of their own."""
    servers = Servers()
    yield servers
    servers.stop()


@pytest.fixture
def server(servers: Servers, server_name: str) -> EmbeddedRedis:
    """A running server, shared by all tests: nobody stops it or flushes it."""
    try:
        return servers.get(server_name)
    except MissingServer as missing:
        pytest.fail(str(missing), pytrace=False)


@pytest.fixture
def make_server(servers: Servers, server_name: str) -> Iterator[Callable[..., EmbeddedRedis]]:
    """Makes started servers of this test alone, to be killed, filled or flushed."""
    made: list[EmbeddedRedis] = []

    def make(**options: object) -> EmbeddedRedis:
        try:
            made.append(servers.make(server_name, **options))
        except MissingServer as missing:
            pytest.fail(str(missing), pytrace=False)
        return made[-1].start()

    yield make
    for server in made:
        server.kill()  # a request would be waited for: by a primary for its replicas, for example
        server.stop()


@pytest.fixture
def private_server(make_server: Callable[..., EmbeddedRedis]) -> EmbeddedRedis:
    """A started server of this test alone, with a loopback port too; what it has answered outlasts
    its death ('everysec' puts off even the write while an fsync is under way)."""
    return make_server(port=0, config={"appendfsync": "always"})


@pytest.fixture
def client(server: EmbeddedRedis) -> Iterator[redis.Redis]:
    """A plain redis-py client on `server`; replies are bytes."""
    with redis.Redis.from_url(server.url) as client:
        yield client


@pytest.fixture
def queue_name(request: pytest.FixtureRequest) -> Iterator[str]:
    """A queue of this test alone, on a shared server too: nothing of it is left for a test that
    reads all queues there are."""
    shared: redis.Redis | None = None
    if "server" in request.fixturenames:
        servers: Servers = request.getfixturevalue("servers")
        shared = servers.client(request.getfixturevalue("server"))
    test = re.sub(r"\W+", "-", request.node.name).strip("-")[:40]
    name = f"{test}-{uuid.uuid4().hex[:8]}"
    yield name
    if shared is not None and (left := list(shared.scan_iter(f"*{name}*", count=10_000))):
        if is_cluster(shared):  # they may be in several slots
            for key in left:
                shared.unlink(key)
        else:
            shared.unlink(*left)


@pytest.fixture
def no_defaults(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`rqueue.client.default_queues` as in a process that configured nothing."""
    from rqueue.client import default_queues

    monkeypatch.delenv("RQUEUE_URL", raising=False)
    for name in ("_settings", "_client", "_async_client"):
        monkeypatch.setattr(default_queues, name, None)
    kept = dict(default_queues.QUEUES)
    default_queues.QUEUES.clear()
    yield default_queues
    default_queues.disconnect()
    default_queues.QUEUES.update(kept)
