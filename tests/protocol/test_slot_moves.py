"""While a cluster moves a queue's slot key by key, a script runs whole or not at all."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from rqueue.inspector.doctor.doctor import Doctor
from rqueue.protocol import commands, scripts
from rqueue.protocol.commands import Put, ScriptCall, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute
from tests.support.redis_cluster import SmallCluster, slot_of
from tests.support.slot_moves import SlotMove, moving
from tests.support.snapshot import take_snapshot


@pytest.fixture
def keys(redis_cluster: SmallCluster, queue_name: str) -> Iterator[QueueKeys]:
    yield (keys := QueueKeys(queue_name))
    with redis_cluster.client() as client:
        for key in client.scan_iter(match=keys.base + "*"):
            client.delete(key)


def ask(
    node: redis.Redis, call: ScriptCall[Any], declared: tuple[str, ...], *, asking: bool
) -> str:
    """Run a call on a node as a client does that was sent there; what it refused it with, or ""."""
    script = scripts.script(call.script)
    with node.client() as one:
        if asking:
            one.execute_command("ASKING")
        try:
            one.execute_command("EVAL", script.source, len(declared), *declared, *call.args)
        except redis.ResponseError as error:
            return type(error).__name__
    return ""


def contents(move: SlotMove, keys: QueueKeys) -> dict[str, Any]:
    """The queue's keys on both nodes."""
    found: dict[str, Any] = {}
    for node in (move.source, move.target):
        for key in node.scan_iter(match=keys.base + "*", count=1000):
            # DUMP asks who serves the key: where it has moved to, only one that asks may look
            with node.client() as one:
                one.execute_command("ASKING")
                found[f"{node is move.source} {key.decode()}"] = one.execute_command("DUMP", key)
    return found


def calls(keys: QueueKeys, term: str) -> list[ScriptCall[Any]]:
    """What clients, workers and supervisors do all the time, and what people do."""
    return [
        commands.enqueue(keys, [Put("new", b'["t"]')]),
        commands.enqueue(keys, [Put("later", b'["t"]', delay_ms=60_000)]),
        commands.pull(keys, "c", term, Window(9)),
        commands.settle(keys, "c", term, Window(9), ack=["job-0"]),
        commands.renew(keys, 60_000, ["c"]),
        commands.reclaim(keys, "c", b"{}", []),
        commands.cancel(keys, "job-1"),
        commands.purge(keys, 100, scheduled=True),
        commands.pause(keys),
    ]


def prepared(cluster: SmallCluster, keys: QueueKeys) -> str:
    """A queue with something in it; the term of its consumer."""
    with cluster.client() as client:
        puts = [Put(f"job-{number}", b'["t"]') for number in range(6)]
        execute(client, commands.enqueue(keys, puts))
        execute(client, commands.enqueue(keys, [Put("due", b'["t"]', delay_ms=3_600_000)]))
        term = execute(client, commands.register(keys, "c", lease_ms=600_000)).term
        execute(client, commands.pull(keys, "c", term, Window(3)))
    return term


def step_by_step(
    cluster: SmallCluster, keys: QueueKeys, declared: Callable[[ScriptCall[Any]], tuple[str, ...]]
) -> list[str]:
    """Move the slot, and try every call on both nodes after each key: what was refused and had
    changed something all the same, or was half done."""
    term = prepared(cluster, keys)
    wrong = []
    with moving(cluster, slot_of(keys.queue)) as move:
        move.begin()
        left = move.left()
        random.Random(5).shuffle(left)
        for number, key in enumerate(left):
            for call in calls(keys, term):
                before = contents(move, keys)
                for node, asking in ((move.source, False), (move.target, True)):
                    said = ask(node, call, declared(call), asking=asking)
                    if not said:
                        wrong.append(f"{call.script} ran after {number} keys")
                    elif contents(move, keys) != before:
                        wrong.append(f"{call.script} was refused ({said}) after {number} keys")
                if contents(move, keys) != before:
                    return wrong  # from here on nothing is as it was
            move.one(key)
        move.end()
    return wrong


def test_no_step_is_half_done_whatever_has_moved(
    redis_cluster: SmallCluster, keys: QueueKeys
) -> None:
    assert step_by_step(redis_cluster, keys, lambda call: call.keys) == []
    with redis_cluster.client() as client:
        assert execute(client, commands.counts(keys)).held == 3
        assert Doctor(client, "rqueue").check_queue(keys.queue) == []


def test_without_the_guard_this_would_be_found(
    redis_cluster: SmallCluster, keys: QueueKeys
) -> None:
    assert step_by_step(redis_cluster, keys, lambda call: call.keys[:1]) != []
    with moving(
        redis_cluster, slot_of(keys.queue)
    ) as move:  # what is half moved is no queue any more
        for node in (move.source, move.target):
            for key in list(node.scan_iter(match=keys.base + "*")):
                with node.client() as one:
                    one.execute_command("ASKING")
                    one.delete(key)
        move.give_up()


def test_nothing_is_stranded_by_a_move_under_load(
    redis_cluster: SmallCluster, keys: QueueKeys
) -> None:
    """Clients enqueue while their queue moves to another node: what was acknowledged waits there,
    in order, and nothing else."""
    prepared(redis_cluster, keys)
    acknowledged: list[str] = []
    stop = threading.Event()
    with moving(redis_cluster, slot_of(keys.queue)) as move:

        def load() -> None:
            number = 0
            while not stop.is_set():
                call = commands.enqueue(keys, [Put(f"load-{number}", b'["t"]')])
                for node in (move.source, move.target):
                    if not ask(node, call, call.keys, asking=False):
                        acknowledged.append(f"load-{number}")
                        number += 1
                        break

        thread = threading.Thread(target=load)
        thread.start()
        try:
            _wait(lambda: len(acknowledged) > 100)
            move.begin()
            refused_at = len(acknowledged)
            while left := move.left():
                for key in random.Random(refused_at).sample(left, len(left)):
                    move.one(key)
            assert len(acknowledged) <= refused_at + 1, "one may have been under way"
            move.end()
            _wait(lambda: len(acknowledged) > refused_at + 100)
        finally:
            stop.set()
            thread.join()
        look = take_snapshot(move.target, keys)
    waiting = [id for id in look.lists["ready:4"] if id.startswith("load-")]
    assert waiting == acknowledged
    assert {id for id in look.jobs if id.startswith("load-")} == set(acknowledged)
    with redis_cluster.client() as client:
        assert Doctor(client, "rqueue").check_queue(keys.queue) == []


def _wait(true: Callable[[], bool]) -> None:
    pause, tries = threading.Event(), 0
    while not true():
        tries += 1
        assert tries < 3000, "nothing happens"
        pause.wait(0.01)
