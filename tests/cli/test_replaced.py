"""What the command line says while another server takes the place of one, and while a slot is left
between two."""

from __future__ import annotations

from pathlib import Path

import redis

from rqueue.client._sync.queue import Queue
from rqueue.settings import Settings
from tests.support.command_line import invoke
from tests.support.hanging import hanging
from tests.support.redis_cluster import SmallCluster, slot_of
from tests.support.redis_server import Servers
from tests.support.sentinels import NAME, SENTINEL_PASSWORD, BehindSentinels, port_of, until
from tests.support.slot_moves import moving


def down_after(behind: BehindSentinels, ms: int) -> None:
    for port in behind.sentinel_ports:
        with redis.Redis(port=port, password=SENTINEL_PASSWORD) as sentinel:
            words = ("SENTINEL", "SET", NAME, "down-after-milliseconds", ms)
            sentinel.execute_command(*words)


def test_the_doctor_asks_the_sentinels(servers: Servers, tmp_path: Path) -> None:
    """A primary that hangs: before the Sentinels have noticed, and after a promotion."""
    behind = BehindSentinels(servers, tmp_path)
    old = behind.servers[0]

    def doctor(code: int) -> str:
        return " ".join(invoke("--url", behind.url, "doctor", code=code).output.split())

    try:
        assert "no problems" in doctor(0)
        down_after(behind, 3_600_000)
        with hanging(old):
            said = doctor(1)
            assert f"no answer from 127.0.0.1:{port_of(old)}, the primary that the" in said
            assert "1 replica of it can take over" in said
            assert "do not count it as down yet" in said
            down_after(behind, 500)
            until(lambda: behind.named() not in (None, port_of(old)), "a failover", 60)
            assert "no problems" in doctor(0)
        behind.servers.reverse()
        until(lambda: "has no replica" not in doctor(0), "that the old one follows", 60)
        down_after(behind, 3_600_000)
        old.kill()
        behind.servers[0].kill()
        said = doctor(1)
        assert "no problems" not in said
        assert f"no answer from 127.0.0.1:{port_of(behind.servers[0])}, the primary" in said
    finally:
        behind.stop()


def test_a_slot_that_is_left_half_moved_is_told_as_one(
    make_cluster: type[SmallCluster], queue_name: str
) -> None:
    """Its node is there, and the queues of other slots on it are shown."""
    cluster = make_cluster(**{"cluster-require-full-coverage": "no"})
    url = cluster.cluster_url
    node = cluster.masters()[0]
    torn, whole = cluster.queue_on(node, "torn"), cluster.queue_on(node, "whole")
    for name in (torn, whole):
        with Queue(name, settings=Settings(url=url)) as queue:
            queue.send("t")
    with moving(cluster, slot_of(torn)) as move:
        move.begin()
        for key in move.left()[1:]:
            move.one(key)
        listed = invoke("--url", url, "queues", code=4)
        (row,) = (row for row in listed.stdout.splitlines() if row.startswith(torn))
        assert row.endswith("its slot is being moved, or is served by nobody")
        assert any(row.startswith(whole) for row in listed.stdout.splitlines())
        assert f"queue '{torn}' cannot be asked: " in listed.stderr
        lines = ("queues Q", "jobs Q", "show one -q Q", "stats Q --interval 10ms", "groups Q")
        said = [invoke("--url", url, *line.replace("Q", torn).split(), code=4) for line in lines]
        for one in (listed, *said):
            assert "is being moved" in one.output
            assert "'rqueue doctor' says" in one.output
            assert "TTL" not in one.output and "is missing" not in one.output
        for key in move.left():
            move.one(key)
        move.end()
        invoke("--url", url, "queues")
