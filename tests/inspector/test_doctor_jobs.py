"""Damages of jobs and their places, done by hand, are found, repaired, and nothing is lost."""

import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor, Inspector
from rqueue.protocol import commands
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.inspector.healing import Make, drain, fill, heals, kinds

pytestmark = pytest.mark.each_server(oldest_if_long=True)


# -- jobs ------------------------------------------------------------------------------------------


def test_a_lost_job_goes_back_to_its_position(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    client.lrem(base + "ready:4", 1, "j2")
    assert kinds(doctor.check_queue(queue.name)) == {"lost": "j2"}
    assert heals(doctor, queue) == ["lost"]
    assert drain(queue, consumer) == ["j1", "j3", "j5", "j0", "j2", "j4"]


def test_a_lost_job_that_is_not_due_goes_back_to_the_schedule(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str
) -> None:
    queue.enqueue_puts([commands.Put("later", b'["t"]', delay_ms=60_000)])
    before = client.zrange(base + "scheduled", 0, -1, withscores=True)
    client.delete(base + "scheduled")
    assert heals(doctor, queue) == ["lost"]
    assert client.zrange(base + "scheduled", 0, -1, withscores=True) == before


def test_a_lost_job_that_was_due_goes_back_among_those(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    due = queue.counts().now + 60_000
    fill(queue, 1)
    queue.enqueue_puts(
        [commands.Put(id_, b'["t"]', at_ms=due + ms) for id_, ms in (("x", 9), ("y", 7), ("z", 9))]
    )
    move_time(queue, 61_000)
    execute(client, commands.promote(queue.keys))
    ids = client.lrange(base + "due:4", 0, -1)
    assert ids == [b"y", b"x", b"z"]
    for damage in ("lost", "misfiled", "unsorted"):
        client.lrem(base + "due:4", 1, "x")
        if damage == "misfiled":
            client.rpush(base + "ready:4", "x")
        elif damage == "unsorted":
            client.rpush(base + "due:4", "x")
        assert damage in kinds(doctor.check_queue(queue.name))
        heals(doctor, queue)
        assert client.lrange(base + "due:4", 0, -1) == ids
    assert drain(queue, consumer) == ["y", "x", "z", "j0"]


def test_due_jobs_that_no_pull_looks_for(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    queue.enqueue_puts([commands.Put("later", b'["t"]', delay_ms=1000)])
    queue.promote("later")
    client.hdel(base + "meta", "promoted")
    assert drain(queue, consumer) == []
    assert kinds(doctor.check_queue(queue.name))["promoted"] == "promoted"
    heals(doctor, queue)
    assert drain(queue, consumer) == ["later"]


def test_an_id_without_a_job_is_taken_out(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    client.hdel(base + "jobs", "j2")
    client.zadd(base + "dead", {"nobody": 5})
    found = doctor.check_queue(queue.name)
    assert {(f.kind, f.subject) for f in found} == {("no-job", "j2"), ("no-job", "nobody")}
    assert heals(doctor, queue) == ["no-job", "no-job"]
    assert drain(queue, consumer) == ["j1", "j3", "j5", "j0", "j4"]


def test_a_key_of_another_type_is_moved_away(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    queue.enqueue_puts([commands.Put("later", b'["t"]', delay_ms=60_000)])
    for _ in range(2):
        client.set(base + "scheduled", "x")
        client.set(base + "ready:9", "y")
        found = doctor.check_queue(queue.name)
        assert {(f.kind, f.subject) for f in found} == {
            ("wrong-type", "scheduled"), ("wrong-type", "ready:9"),
        }  # fmt: skip
        assert doctor.check_service(queue.name) == []
        assert set(heals(doctor, queue)) == {"wrong-type", "lost"}
    assert client.get(base + "foreign:scheduled") == b"x"
    assert client.get(base + "foreign:ready:9:2") == b"y"
    assert drain(queue, consumer) == ["j1", "j3", "j5", "j0", "j2", "j4"]


def test_a_queue_goes_on_behind_its_jobs_where_meta_was_overwritten(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    queue.enqueue_puts([commands.Put("later", b'["t"]', delay_ms=60_000)])
    client.set(base + "meta", "x")
    heals(doctor, queue)
    queue.enqueue_puts([commands.Put("next", b'["t"]')])
    assert [client.hget(base + "jobs", id_)[:2] for id_ in ("later", "next")] == [b"7,", b"8,"]


def test_an_id_of_no_job_among_held_ones_takes_no_room_for_ever(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    one = consumer(jobs=1)
    client.rpush(base + f"held:{one.name}", "stranger")
    fill(queue, 1)
    assert one.pull() == []
    assert kinds(doctor.check_queue(queue.name))["no-job"] == "stranger"
    heals(doctor, queue)
    assert [job.id for job in one.pull()] == ["j0"]


def test_a_job_in_two_lists_stays_in_its_own(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    client.rpush(base + "ready:9", "j2")
    assert kinds(doctor.check_queue(queue.name))["twice"] == "j2"
    heals(doctor, queue)
    assert drain(queue, consumer) == ["j1", "j3", "j5", "j0", "j2", "j4"]


def test_a_job_twice_in_one_list(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    client.linsert(base + "ready:4", "after", "j2", "j2")
    assert kinds(doctor.check_queue(queue.name)) == {"twice": "j2"}
    heals(doctor, queue)
    assert drain(queue, consumer) == ["j1", "j3", "j5", "j0", "j2", "j4"]


def test_a_held_job_that_also_waits_stays_held(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    one = consumer(jobs=1)
    (job,) = one.pull()
    client.lpush(base + "ready:9", job.id)
    assert kinds(doctor.check_queue(queue.name)) == {"twice": job.id}
    heals(doctor, queue)
    assert one.ack(job)
    assert job.id not in drain(queue, consumer)


def test_a_job_held_twice_stays_with_one_and_the_other_is_notified(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    one, other = consumer(name="a", jobs=1), consumer(name="b", jobs=5)
    (job,) = one.pull()
    client.rpush(base + "held:b", job.id)
    assert kinds(doctor.check_queue(queue.name))["twice"] == job.id
    heals(doctor, queue)
    assert one.ack(job)
    assert not other.ack(job)
    assert b"X" + job.id.encode() in client.lrange(base + "wake:b", 0, -1)


def test_a_dead_job_that_also_waits_stays_dead(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue, 1)
    one = consumer(jobs=1)
    one.reject(one.pull()[0], "no")
    client.rpush(base + "ready:4", "j0")
    assert kinds(doctor.check_queue(queue.name))["twice"] == "j0"
    heals(doctor, queue)
    assert queue.counts().dead == 1
    assert queue.counts().ready == 0


def test_a_scheduled_job_that_also_waits_waits(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str
) -> None:
    queue.enqueue_puts([commands.Put("later", b'["t"]', delay_ms=60_000)])
    client.rpush(base + "ready:4", "later")
    client.hset(base + "meta", "levels", "4")
    assert kinds(doctor.check_queue(queue.name))["twice"] == "later"
    heals(doctor, queue)
    assert (queue.counts().ready, queue.counts().scheduled) == (1, 0)


def test_a_list_out_of_order_is_sorted_again(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    queue.enqueue_puts([commands.Put(f"n{i:03}", b'["t"]') for i in range(30)])
    ids = client.lrange(base + "ready:4", 0, -1)
    client.delete(base + "ready:4")
    client.rpush(base + "ready:4", *ids[10:20], *ids[:10], *reversed(ids[20:]))
    assert kinds(doctor.check_queue(queue.name))["unsorted"] == "ready:4"
    heals(doctor, queue)
    assert drain(queue, consumer) == [f"n{i:03}" for i in range(30)]


def test_a_job_in_the_list_of_another_level_is_moved(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    client.lrem(base + "ready:4", 1, "j2")
    client.linsert(base + "ready:9", "after", "j1", "j2")
    assert kinds(doctor.check_queue(queue.name)) == {"misfiled": "j2"}
    heals(doctor, queue)
    assert drain(queue, consumer) == ["j1", "j3", "j5", "j0", "j2", "j4"]


def test_a_scheduled_job_at_a_wrong_place_gets_its_own(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str
) -> None:
    queue.enqueue_puts([commands.Put("later", b'["t"]', delay_ms=60_000)])
    ((member, due),) = client.zrange(base + "scheduled", 0, -1, withscores=True)
    client.delete(base + "scheduled")
    client.zadd(base + "scheduled", {b"9500000000000007later": due})
    assert kinds(doctor.check_queue(queue.name)) == {"wrong-place": "later"}
    heals(doctor, queue)
    assert client.zrange(base + "scheduled", 0, -1, withscores=True) == [(member, due)]
    assert queue.cancel("later")


def test_a_value_without_a_header_is_a_dead_letter_with_its_bytes(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    client.hset(base + "jobs", "j2", b"garbage of ours")
    assert kinds(doctor.check_queue(queue.name))["broken"] == "j2"
    heals(doctor, queue)
    (dead,) = list(Inspector(redis=client).dead(queue.name))
    assert dead.id == "j2"
    assert dead.cause is not None and dead.cause["kind"] == "undecodable"
    stored = client.hget(base + "jobs", "j2")
    assert stored is not None and stored.endswith(b";garbage of ours")
    assert drain(queue, consumer) == ["j1", "j3", "j5", "j0", "j4"]


def test_a_mark_in_no_list_is_dropped(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str
) -> None:
    fill(queue)
    queue.cancel("j2")
    client.lrem(base + "ready:4", 1, "j2")
    assert kinds(doctor.check_queue(queue.name)) == {"stray-mark": "j2"}
    assert heals(doctor, queue) == ["stray-mark", "marked"]
    assert queue.counts().ready == 5
