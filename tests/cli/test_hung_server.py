"""Every command where a server hangs: it ends in time, names the server, and exits as `--help`
says. A server is waited for once, and after a while with a word."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import redis
from click.testing import Result

import rqueue.inspector.inspector
import rqueue.transport.cluster
import rqueue.transport.nodes
import rqueue.transport.silent_servers
from rqueue import ShardedQueue
from rqueue.cli import cli
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.settings import Settings
from tests.cli.test_on_cluster import commands_of
from tests.support.command_line import runner
from tests.support.patience import PATIENCE
from tests.support.redis_cluster import SmallCluster, port_of
from tests.support.redis_server import Servers
from tests.support.sentinels import NAME, SENTINEL_PASSWORD, BehindSentinels

ELSEWHERE = {
    "worker": "waits for its server by its nature: tests/workers",
    "dev": "a server of its own",
    "demo": "a server of its own",
    "pipeline archive": "Spark's: tests/pipeline",
    "pipeline report": "Spark's: tests/pipeline",
    "pipeline replay": "Spark's: tests/pipeline",
    "pipeline plan": "Spark's: tests/pipeline",
    "pipeline load": "Spark's: tests/pipeline",
}
"""Commands that are not run here, and where they are, or why not."""

LINES = """
    enqueue app.t 1 -q Q --id one
    queues
    queues Q
    jobs Q
    browse Q
    browse Q --follow
    show one
    show one --queue Q
    log one -q Q
    result one -q Q
    result one -q Q --timeout 1h
    watch one -q Q
    consumers Q
    groups Q
    alerts Q
    alerts Q --follow
    unique Q key
    history Q
    history Q --follow
    stats Q --interval 10ms
    stats Q --watch
    stats --interval 10ms
    promote Q later
    prioritize Q one --front
    move Q B one --yes
    copy Q B one --yes
    reject Q one --reason broken
    expire Q --all --yes
    dead list Q
    dead requeue Q --yes
    dead purge Q --yes
    cancel one --yes
    cancel one -q Q --yes
    pause Q
    resume Q
    cron add Q nightly app.t --cron 0_3_*_*_*
    cron list Q
    cron show Q nightly
    cron pause Q nightly
    cron resume Q nightly
    cron edit Q nightly --every 2h
    cron run-now Q nightly
    cron reset Q nightly
    cron remove Q nightly
    limits set Q api 3
    limits list Q
    limits reset Q api
    shares set Q acme 3
    shares list Q
    shares reset Q acme
    shards create Q 2
    shards list Q
    shards open Q
    shards advance Q
    shards drain Q 0
    shards forget Q 1 --yes
    configure Q --keep 90s
    configure Q
    purge Q --yes
    delete Q --yes
    doctor
    doctor Q
    doctor Q --repair --yes
    bench
"""

LIMIT_S = 0.4
"""How long an answer may take here."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """All limits are short."""
    monkeypatch.setenv("RQUEUE_COMMAND_TIMEOUT", f"{LIMIT_S * 1000:.0f}ms")
    monkeypatch.setattr(rqueue.inspector.inspector, "BLOCK_MS", 0)
    monkeypatch.setattr(rqueue.transport.cluster, "ASK_S", LIMIT_S)
    monkeypatch.setattr(rqueue.transport.nodes, "ASK_S", LIMIT_S)
    monkeypatch.setattr(rqueue.transport.silent_servers, "SAY_AFTER_S", LIMIT_S / 4)


@contextmanager
def hung(server: EmbeddedRedis) -> Iterator[None]:
    """The server answers nothing, and keeps its connections."""
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def test_every_command_is_run_here() -> None:
    run = {" ".join(line.split()[:2]) for line in LINES.strip().splitlines()}
    run |= {line.split()[0] for line in LINES.strip().splitlines()}
    assert set(commands_of(cli)) - run == set(ELSEWHERE)


def played(url: str, queue: str) -> Iterator[tuple[str, Result, float]]:
    for line in LINES.strip().splitlines():
        if "cluster" in url and line.strip() == "bench":
            continue  # its queue may be anywhere
        words = [queue if word == "Q" else word.replace("_", " ") for word in line.split()]
        since = time.monotonic()
        result = runner().invoke(cli, ["--url", url, *words], prog_name="rqueue")
        yield line.strip(), result, time.monotonic() - since


def wrong_with(line: str, result: Result, took: float, address: str, code: int) -> str:
    """What is not as it must be."""
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{line}: {result.exception!r}"
    said = " ".join((result.stdout + result.stderr).split())
    if result.exit_code != code or took > PATIENCE or f"no answer from {address}" not in said:
        return f"{line}: exit {result.exit_code} after {took:.2f} s\n{said}"
    if result.stderr.count(f"waiting for {address}") > 1 or "waiting" in result.stdout:
        return f"{line}: {result.stderr}"
    return ""


def assert_all(url: str, queue: str, address: str, doctor: int) -> None:
    """All commands say that this server does not answer. doctor: its exit code."""
    wrong = [
        wrong_with(*one, address, doctor if one[0].startswith("doctor") else 4)
        for one in played(url, queue)
    ]
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.timeout(900)
def test_every_command_where_the_server_hangs(private_server: EmbeddedRedis) -> None:
    address = private_server.tcp_url.removeprefix("redis://").removesuffix("/0")
    with hung(private_server):
        assert_all(private_server.tcp_url, "q", address, doctor=4)


@pytest.mark.timeout(900)
def test_every_command_where_a_node_hangs(
    make_cluster: Callable[..., SmallCluster], queue_name: str
) -> None:
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    name = queue_name.partition("[")[0][-40:]
    node = cluster.home(name)
    with Queue(name, settings=Settings(url=cluster.cluster_url)) as queue:
        queue.send("app.t", [1], None)
    with hung(node.server):
        assert_all(cluster.cluster_url, name, f"127.0.0.1:{node.port}", doctor=1)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_command_where_the_primary_hangs(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    behind = BehindSentinels(servers, tmp_path_factory.mktemp("sentinels"))
    try:
        never = ("down-after-milliseconds", 600_000)
        for port in behind.sentinel_ports:  # else they give it up
            with redis.Redis(port=port, password=SENTINEL_PASSWORD) as sentinel:
                sentinel.execute_command("SENTINEL", "SET", NAME, *never)
        with hung(behind.servers[0]):
            assert_all(behind.url, "q", f"127.0.0.1:{port_of(behind.servers[0])}", doctor=1)
    finally:
        behind.stop()


@pytest.mark.timeout(900)
def test_what_other_nodes_say_is_shown(make_cluster: Callable[..., SmallCluster]) -> None:
    """Queues of others are in the table, those that do not answer are named there."""
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    url = cluster.cluster_url
    with ShardedQueue("spread", url, shards=8) as spread:
        spread.table()
    home = cluster.home("spread")
    other = next(node for node in cluster.masters() if node.id != home.id)
    here = cluster.queue_on(home, "here")
    with Queue(here, settings=Settings(url=url)) as queue:
        queue.send("app.t", [1], None)
    shards = {f"spread~{number}" for number in range(8)}
    silent = {name for name in shards if cluster.home(name).id == other.id}
    address = f"127.0.0.1:{other.port}"
    assert silent
    with hung(other.server):
        rows = run(url, "queues", "--shards").stdout.splitlines()
        assert {row.split()[0] for row in rows if f"no answer from {address}" in row} == silent
        assert any(row.startswith(here) for row in rows)
        (whole,) = (row for row in rows if row.startswith("spread "))
        assert f"8 shards, without {len(silent)} shard" in whole
        document = json.loads(run(url, "queues", "--json").stdout)
        assert {one["name"] for one in document} == {here, "spread"}
        found = json.loads(run(url, "doctor", "--json", code=1).stdout)["findings"]
        problems = [one for one in found if one["severity"] == "problem"]
        assert {one["queue"] for one in problems} == {"", *silent}
        assert all(address in one["says"] for one in problems)
    with hung(home.server):
        found = json.loads(run(url, "doctor", "--json", code=1).stdout)["findings"]
        problems = [one["says"] for one in found if one["severity"] == "problem"]
        named = {re.findall(r"127\.0\.0\.1:(\d+)", said)[0] for said in problems}
        assert named == {str(home.port)}


def run(url: str, *words: str, code: int = 4) -> Result:
    result = runner().invoke(cli, ["--url", url, *words], prog_name="rqueue")
    assert result.exit_code == code, result.output
    return result
