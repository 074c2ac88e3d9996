"""Damages of queues that count bytes, done by hand, are found, repaired, and nothing is lost."""

from collections.abc import Callable

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor
from rqueue.inspector.doctor import size_checks
from rqueue.protocol import commands, scripts
from rqueue.protocol.commands import Put
from tests.inspector.damaging import Damage
from tests.inspector.healing import Make, heals, kinds
from tests.property.test_recounting import some_at_a_time
from tests.support import invariants
from tests.support.snapshot import take_snapshot

pytestmark = pytest.mark.each_server(oldest_if_long=True)

JOBS = ["d1", "h1", "w1", "w2", "w3"]
LIMITS: list[dict[str, int | bool]] = [
    {"max_bytes": 1000},
    {"max_bytes": 1000, "count_held": True},
    {"ring_bytes": 1000},
]


def noted(id: str, size: str) -> Damage:
    return lambda client, base: client.hset(base + "sizes", id, size)


DAMAGES: dict[str, tuple[Damage, set[str]]] = {
    "a size is wrong": (noted("w2", "99"), {"size", "bytes"}),
    "a size is no number": (noted("w2", "x"), {"size", "bytes"}),
    "nobody has a size": (noted("nobody", "7"), {"size", "bytes"}),
    "a dead letter counts": (noted("d1", "7"), {"size", "bytes"}),
    "a size is lost": (lambda r, b: r.hdel(b + "sizes", "w1"), {"size", "bytes"}),
    "all sizes are lost": (lambda r, b: r.delete(b + "sizes"), {"size", "bytes"}),
    "the sum is wrong": (lambda r, b: r.hincrby(b + "meta", "waiting_bytes", 5), {"bytes"}),
    "the sum is no number": (lambda r, b: r.hset(b + "meta", "waiting_bytes", "x"), {"bytes"}),
    "the sum is lost": (lambda r, b: r.hdel(b + "meta", "waiting_bytes"), {"bytes"}),
}


def fill(queue: Queue, consumer: Callable[..., Consumer], limit: dict[str, int | bool]) -> Consumer:
    """One is held, one dead, three wait: of them one that has a level of its own, one delayed."""
    queue.configure(**limit)  # type: ignore[arg-type]
    holder = consumer(jobs=2)
    queue.enqueue_puts([Put("h1", b'["t"]'), Put("d1", b'["t"]')])
    holder.reject(holder.pull()[1], "no")
    queue.enqueue_puts([Put("w1", b'["t",[1]]'), Put("w2", b'["t",[12]]', priority=9)])
    queue.enqueue_puts([Put("w3", b'["t",[123]]', delay_ms=60_000)])
    return holder


@pytest.mark.parametrize("limit", LIMITS, ids=str)
def test_a_healthy_queue_has_no_findings(
    doctor: Doctor, queue: Queue, consumer: Make, limit: dict[str, int | bool]
) -> None:
    fill(queue, consumer, limit)
    assert doctor.check_queue(queue.name) == []


@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damage_is_found_and_repaired(
    doctor: Doctor,
    queue: Queue,
    consumer: Make,
    client: redis.Redis,
    damage: str,
    limit: dict[str, int | bool],
) -> None:
    fill(queue, consumer, limit)
    harm, expected = DAMAGES[damage]
    harm(client, queue.keys.base)
    assert expected & kinds(doctor.check_queue(queue.name)).keys() == expected
    heals(doctor, queue)
    snapshot = take_snapshot(client, queue.keys)
    assert invariants.of_state(snapshot) == []
    assert sorted(snapshot.jobs) == JOBS


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any queue has more jobs than one look, or one step, adds up."""
    monkeypatch.setattr(scripts, "SCRIPTS", some_at_a_time())
    monkeypatch.setattr(size_checks, "SUM_MOST", 0)
    monkeypatch.setattr(size_checks, "PAGE", 1)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("damage", [name for name in DAMAGES if "sum" in name])
def test_a_sum_over_many_jobs_is_counted_in_steps(
    doctor: Doctor, queue: Queue, client: redis.Redis, damage: str
) -> None:
    queue.configure(max_bytes=100_000)
    queue.enqueue_puts([Put(f"{'long' * 20}{n}", b'["t",[%d]]' % n) for n in range(100)])
    assert doctor.check_queue(queue.name) == []
    DAMAGES[damage][0](client, queue.keys.base)
    assert kinds(doctor.check_queue(queue.name)).keys() == {"bytes"}
    heals(doctor, queue)
    snapshot = take_snapshot(client, queue.keys)
    assert invariants.of_state(snapshot) == []
    assert not {"recount_at", "recounted"} & snapshot.meta.keys()


@pytest.mark.usefixtures("many")
def test_a_count_that_ended_half_way_is_gone_on_with(
    doctor: Doctor, queue: Queue, client: redis.Redis
) -> None:
    """The queue goes on meanwhile, and is healthy."""
    queue.configure(max_bytes=100_000)
    queue.enqueue_puts([Put(f"{'long' * 20}{n}", b'["t"]') for n in range(100)])
    for _ in range(10):
        assert queue._run(commands.repair_room(queue.keys))
    queue.enqueue_puts([Put("late", b'["t"]')])
    assert invariants.of_state(take_snapshot(client, queue.keys)) == []
    (finding,) = doctor.check_queue(queue.name)
    assert finding.says == "the bytes that wait were being counted again, and nobody went on"
    heals(doctor, queue)
    assert "recount_at" not in take_snapshot(client, queue.keys).meta


def test_a_producer_that_waits_goes_on_once_bytes_are_added_up(
    doctor: Doctor, queue: Queue, client: redis.Redis
) -> None:
    queue.configure(max_bytes=100, overflow="block")
    client.hset(queue.keys.meta, "waiting_bytes", "100")
    call = commands.await_room(queue.keys, "p0", 1, 60_000, 10)
    assert queue._run(call) == "waits"
    heals(doctor, queue)
    assert take_snapshot(client, queue.keys).scores("grants").keys() == {"p0"}
