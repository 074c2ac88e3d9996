"""A name, or an address, that leads to another primary from now on, while the old one is up and
keeps its connections: pools and clients do not stay behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pytest
import redis

from rqueue import Options, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RedisUnavailable
from rqueue.model.job import JobState
from tests.crash.test_cluster import rounds
from tests.support.patience import PATIENCE, until
from tests.support.proxy import Proxy
from tests.support.redis_cluster import port_of
from tests.support.redis_server import Servers
from tests.workers.pools import Pool, make_pool  # noqa: F401

JOBS = 30


class NameThatMoves:
    """Leads to the primary of two servers, the other one of which is its replica."""

    def __init__(self, servers: Servers) -> None:
        self.servers: list[EmbeddedRedis] = [servers.make("newest", port=0) for _ in range(2)]
        for server in self.servers:
            server.start()
        self.ask(1, "REPLICAOF", "127.0.0.1", port_of(self.servers[0]))
        self.replicated()
        self.proxy = Proxy(("127.0.0.1", port_of(self.servers[0])))

    def ask(self, which: int, *words: object) -> object:
        with redis.Redis.from_url(self.servers[which].url) as client:
            return client.execute_command(*words)  # type: ignore[arg-type]

    def role(self, which: int) -> list[bytes]:
        said: list[bytes] = self.ask(which, "ROLE")  # type: ignore[assignment]
        return said

    def replicated(self) -> None:
        """Wait until the replica is up to date."""
        until(lambda: self.role(1)[3:4] == [b"connected"], "a replica", PATIENCE)

    def switch(self) -> float:
        """Give the other one's place to each, as for maintenance; when it had it."""
        self.replicated()
        self.ask(0, "FAILOVER", "TO", "127.0.0.1", port_of(self.servers[1]))
        until(lambda: self.role(1)[0] == b"master", "a switch", PATIENCE)
        self.servers.reverse()
        self.proxy.lead_to(("127.0.0.1", port_of(self.servers[0])))
        return time.monotonic()

    def close(self) -> None:
        self.proxy.close()
        for server in self.servers:
            server.kill()
            server.stop()


def _sent(queue: Queue, id_: str) -> None:
    """Enqueue for as long as it takes, under one id."""

    def taken() -> bool:
        try:
            queue.send("rqueue.noop", options=Options(id=id_))
        except RedisUnavailable:
            return False
        return True

    until(taken, "a primary", PATIENCE)


@rounds
def test_a_pool_follows_a_primary_that_is_demoted_behind_its_name(
    servers: Servers,
    make_pool: Callable[..., Pool],  # noqa: F811
    queue_name: str,
    tmp_path: Path,
    rounds: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = NameThatMoves(servers)
    resumed, ids = [], []
    try:
        pool = make_pool(name.proxy.url, app=["rqueue.cli.noop"], processes=2, lease="10s")
        pool.said("is ready", 2)
        with Queue(queue_name, name.proxy.url) as queue:
            queue.configure(keep="1h")
            for turn in range(rounds):
                ids += [f"{turn}-{number}" for number in range(JOBS)]
                for id_ in ids[-JOBS:]:
                    _sent(queue, id_)
                at = name.switch()
                ids.append(f"{turn}-after")
                _sent(queue, ids[-1])
                queue.job(ids[-1]).result(PATIENCE)
                resumed.append(time.monotonic() - at)
            until(lambda: not (queue.counts().ready or queue.counts().held), "the end", PATIENCE)
            assert {queue.job(id_).state() for id_ in ids} == {JobState.DONE}
        assert pool.drained() == 0
    finally:
        name.close()
    with capsys.disabled():
        print(
            f"\n{rounds} demotions behind a name: work resumed after {median(resumed):.2f} s (at"
            f" most {max(resumed):.2f}); 0 lost of {len(ids)} jobs"
        )
    assert median(resumed) <= 1
