"""Each kind of damage, done by hand, is found, explained, repaired, and nothing else is."""

from collections.abc import Callable

import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.errors import UnknownQueue
from rqueue.inspector import Doctor, Inspector
from rqueue.protocol import commands
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.inspector.healing import Make, drain, fill, heals, kinds
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.each_server


def test_a_healthy_queue_has_no_findings(doctor: Doctor, queue: Queue, consumer: Make) -> None:
    fill(queue)
    queue.enqueue_puts([commands.Put("later", b'["t"]', delay_ms=60_000)])
    first, second = consumer(jobs=2), consumer(jobs=1, bytes=1000)
    held = first.pull()
    second.pull()
    queue.cancel("j2")
    first.reject(held[0], "no")
    first.retry(held[1], delay=60)
    consumer(jobs=5, mode="browse")
    queue.pause()
    consumer(jobs=5)
    assert doctor.check_queue(queue.name) == []
    assert doctor.looked_at > 5


def test_due_jobs_with_headers_of_every_length_stand_where_they_belong(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    """What was charged with a crash, or has limits of its own, has a longer header."""
    queue.enqueue_puts(
        [
            commands.Put("plain", b'["t"]', delay_ms=50),
            commands.Put("crashed", b'["t"]', delay_ms=60),
            commands.Put("limited", b'["t"]', delay_ms=70, max_crashes=5),
            commands.Put("both", b'["t"]', 9, delay_ms=80, max_crashes=5),
            commands.Put("ready", b'["t"]', max_crashes=5),
            commands.Put("later", b'["t"]', delay_ms=60_000, max_crashes=5),
        ]
    )
    move_time(queue, 100)
    first = consumer(jobs=10)
    held = [job.id for job in first.pull()]
    assert len(held) == 5
    assert doctor.check_queue(queue.name) == []
    ran = [commands.Ran("crashed"), commands.Ran("both")]
    execute(client, commands.reclaim(queue.keys, first.name, b'{"kind":"crash"}', ran))
    assert doctor.check_queue(queue.name) == []
    assert client.lrange(base + "due:4", 0, -1) == [b"plain", b"crashed", b"limited"]
    assert queue.cancel("limited")
    assert doctor.check_queue(queue.name) == []
    assert doctor.heal(queue.name) == []


def test_an_unknown_queue_is_said_to_be_one(doctor: Doctor) -> None:
    with pytest.raises(UnknownQueue):
        doctor.check_queue("nobody-ever")


# -- counters --------------------------------------------------------------------------------------


def test_the_counter_of_cancelled_elements_is_exact_again(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str
) -> None:
    fill(queue)
    queue.cancel("j2")
    client.hset(base + "meta", "marked", 4)
    assert kinds(doctor.check_queue(queue.name)) == {"marked": "marked"}
    heals(doctor, queue)
    assert queue.counts().ready == 5


def test_a_level_that_meta_forgot_is_served_again(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    client.hset(base + "meta", "levels", "4")
    assert "levels" in kinds(doctor.check_queue(queue.name))
    heals(doctor, queue)
    assert drain(queue, consumer) == ["j1", "j3", "j5", "j0", "j2", "j4"]


def test_positions_go_on_behind_the_last_one(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    client.hset(base + "meta", "seq", 2)
    assert kinds(doctor.check_queue(queue.name)) == {"positions": "positions"}
    heals(doctor, queue)
    queue.enqueue_puts([commands.Put("new", b'["t"]')])
    assert drain(queue, consumer)[-1] == "new"


def test_a_queue_of_another_version_is_left_alone(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str
) -> None:
    fill(queue)
    client.hset(base + "meta", "v", 99)
    (finding,) = doctor.check_queue(queue.name)
    assert finding.kind == "schema"
    assert not doctor.repair(finding)
    client.hdel(base + "meta", "v")
    assert kinds(doctor.check_queue(queue.name)) == {"version": "version"}
    heals(doctor, queue)


def test_the_key_that_is_to_be_absent(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str
) -> None:
    fill(queue)
    client.set(base + "guard", "here")
    (finding,) = doctor.check_queue(queue.name)
    assert (finding.kind, finding.remedy) == ("guard", "")
    assert f"'{base}guard'" in finding.says
    client.delete(base + "guard")
    assert doctor.check_queue(queue.name) == []


# -- records ---------------------------------------------------------------------------------------


def test_a_dead_letter_without_a_cause_gets_one(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue, 1)
    one = consumer(jobs=1)
    one.reject(one.pull()[0], "no")
    client.hdel(base + "causes", "j0")
    client.hset(base + "causes", "nobody", "{}")
    found = doctor.check_queue(queue.name)
    assert kinds(found) == {"no-cause": "j0", "causes": "causes"}
    assert heals(doctor, queue) == ["no-cause", "causes"]
    assert client.hkeys(base + "causes") == [b"j0"]


def test_what_ended_is_not_alive(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str
) -> None:
    fill(queue, 1)
    client.hset(base + "ended", "j0", "D5:")
    assert kinds(doctor.check_queue(queue.name)) == {"ended-alive": "j0"}
    heals(doctor, queue)
    assert not client.exists(base + "ended")
    assert queue.counts().ready == 1


@pytest.mark.parametrize("which", ["errors", "awaited", "parked"])
def test_notes_of_nobody_are_dropped(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, which: str
) -> None:
    fill(queue, 1)
    client.hset(base + which, "nobody", "1")
    assert kinds(doctor.check_queue(queue.name)) == {which: which}
    heals(doctor, queue)
    assert not client.exists(base + which)


def test_a_damaged_entry_of_history_costs_no_other(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, inspector: Inspector
) -> None:
    fill(queue, 2)
    queue.cancel("j0")
    damaged = client.xadd(base + "history", {"b": b"\x01garbage"}).decode()
    queue.cancel("j1")
    (found,) = doctor.check_queue(queue.name)
    assert (found.kind, found.severity) == ("history", "problem")
    assert damaged in found.says
    for rows in (list(inspector.history(queue.name)), inspector.last_rows(queue.name, 9)[0]):
        assert [row["outcome"] for row in rows] == ["cancelled", "damaged", "cancelled"]
        assert rows[1]["entry"] == damaged
        assert f"entry {damaged}" in rows[1]["error"]
    client.xdel(base + "history", damaged)
    assert not doctor.check_queue(queue.name)


@pytest.mark.parametrize("wrong", ["missing", "late", "stray", "held"])
def test_what_is_noted_of_times_to_live_is_set_right(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make, wrong: str
) -> None:
    for id in ("a", "b"):
        queue.send("t", options=Options(id=id, ttl=600))
    assert [job.id for job in consumer(name="c", jobs=1).pull()] == ["a"]
    expires = client.zscore(base + "expiring", "b")
    if wrong == "missing":
        client.zrem(base + "expiring", "b")
    elif wrong == "late":
        client.zadd(base + "expiring", {"b": 5.0})
    else:
        client.zadd(base + "expiring", {"nobody" if wrong == "stray" else "a": 5.0})
    subject = {"stray": "nobody", "held": "a"}.get(wrong, "b")
    assert kinds(doctor.check_queue(queue.name)) == {"expiring": subject}
    heals(doctor, queue)
    assert client.zrange(base + "expiring", 0, -1, withscores=True) == [(b"b", expires)]


def test_who_waits_for_room_for_a_job_that_is_gone_is_notified(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue, 3)
    one = consumer(name="c", jobs=2, bytes=30)
    assert [job.id for job in one.pull()] == ["j1"]
    assert client.hgetall(base + "byte_waiters") == {b"j0": b"c"}
    client.hset(base + "byte_waiters", mapping={"nobody": "c"})
    client.hdel(base + "byte_waiters", "j0")
    assert kinds(doctor.check_queue(queue.name)) == {"byte_waiters": "byte_waiters"}
    heals(doctor, queue)
    assert one.wait(PATIENCE)


def test_records_that_nobody_can_read_are_reported(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str
) -> None:
    fill(queue, 1)
    client.hset(base + "ended", "other", "what")
    (finding,) = doctor.check_queue(queue.name)
    assert (finding.kind, finding.remedy) == ("unreadable", "")


# -- how it looks ----------------------------------------------------------------------------------


def test_what_is_gone_at_the_second_look_is_not_reported(
    client: redis.Redis, queue: Queue, base: str
) -> None:
    fill(queue)
    client.lrem(base + "ready:4", 1, "j2")
    looks: list[float] = []

    def mend(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            execute(client, commands.repair_job(QueueKeys(queue.name), "j2"))

    assert Doctor(client, "rqueue", wait=mend).check_queue(queue.name) == []
    assert len(looks) == 2


def test_many_damages_at_once(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    queue.enqueue_puts([commands.Put(f"n{i:04}", b'["t"]') for i in range(900)])
    ids = client.lrange(base + "ready:4", 0, -1)
    for id_ in ids[::50]:
        client.lrem(base + "ready:4", 1, id_)
    for id_ in ids[7::50]:
        client.hdel(base + "jobs", id_)
    client.rpush(base + "ready:4", *ids[30:35])
    client.rpush(base + "held:ghost", *ids[100:103])
    assert len(doctor.check_queue(queue.name)) > 10
    heals(doctor, queue)
    gone = {id_.decode() for id_ in ids[7::50]}
    expected = [f"n{i:04}" for i in range(900) if f"n{i:04}" not in gone]
    one, got = consumer(jobs=1000), []
    while page := one.pull():
        got += [job.id for job in page]
    assert got == expected


def test_the_server_is_checked(
    make_server: Callable[..., object],
) -> None:
    server = make_server(config={"maxmemory": "50mb", "maxmemory-policy": "allkeys-lru"})
    with redis.Redis.from_url(server.url) as client:  # type: ignore[attr-defined]
        found = Doctor(client, "rqueue").check_server()
        assert "eviction" in {finding.kind for finding in found}
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("appendonly", "no")
        found = Doctor(client, "rqueue").check_server()
        assert {f.kind: f.severity for f in found} == {"persistence": "note"}
        client.set("ballast", "x" * 400_000)
        client.config_set("maxmemory", "1mb")
        assert "memory" in {f.kind for f in Doctor(client, "rqueue").check_server()}


def test_a_loss_is_not_hidden_by_a_double(
    doctor: Doctor,
    queue: Queue,
    client: redis.Redis,
    base: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sums agree then; a large queue is not searched while they do and all else is well."""
    monkeypatch.setattr("rqueue.inspector.doctor.checkup.SCAN_ALWAYS", 10)
    queue.enqueue_puts([commands.Put(f"n{i:04}", b'["t"]') for i in range(1000)])
    client.lrem(base + "ready:4", 1, "n0500")
    client.linsert(base + "ready:4", "before", "n0003", "n0800")
    found = doctor.check_queue(queue.name)
    assert {(f.kind, f.subject) for f in found} == {("lost", "n0500"), ("twice", "n0800")}
    heals(doctor, queue)
    assert client.lrange(base + "ready:4", 0, -1) == [b"n%04d" % i for i in range(1000)]
