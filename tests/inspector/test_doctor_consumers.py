"""Damages of consumers and of their notifications are found and repaired."""

import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor
from rqueue.protocol import commands
from tests.inspector.healing import Make, drain, fill, heals, kinds
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.each_server(oldest_if_long=True)


# -- consumers -------------------------------------------------------------------------------------


def test_jobs_held_by_no_consumer_are_released(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    client.lrem(base + "ready:4", 1, "j0")
    client.rpush(base + "held:ghost", "j0")
    assert kinds(doctor.check_queue(queue.name)) == {"ghost": "ghost"}
    heals(doctor, queue)
    assert drain(queue, consumer) == ["j1", "j3", "j5", "j0", "j2", "j4"]


@pytest.mark.parametrize("where", ["interested", "notified", "not_interested", "browsers"])
def test_a_name_without_a_consumer_goes_off_its_list(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, where: str
) -> None:
    fill(queue)
    if where.endswith("ed") and where != "not_interested":
        client.zadd(base + where, {"ghost": 5})
    else:
        client.sadd(base + where, "ghost")
    assert kinds(doctor.check_queue(queue.name))["ghost"] == "ghost"
    heals(doctor, queue)
    assert not client.exists(base + where)


def test_a_consumer_without_its_hash_is_gone(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue)
    one = consumer(name="c", jobs=2)
    one.pull()
    client.delete(base + "consumer:c")
    assert kinds(doctor.check_queue(queue.name)) == {"ghost": "c"}
    heals(doctor, queue)
    assert queue.counts().ready == 6
    assert not client.exists(base + "held:c", base + "wake:c")


@pytest.mark.parametrize("damage", ["in none", "in two", "state"])
def test_a_consumer_is_in_one_list_and_says_so(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make, damage: str
) -> None:
    one = consumer(name="c", jobs=2)
    one.pull()
    assert one.state == "interested"
    if damage == "in none":
        client.zrem(base + "interested", "c")
    elif damage == "in two":
        client.sadd(base + "not_interested", "c")
    else:
        client.hset(base + "consumer:c", "state", "not_interested")
    kind = "state" if damage == "state" else "lists"
    assert kinds(doctor.check_queue(queue.name)) == {kind: "c"}
    assert heals(doctor, queue) == [kind]
    fill(queue, 1)
    jobs = [wake.job.id for wake in one.wait(PATIENCE) if wake.job] or [
        job.id for job in one.pull()
    ]
    assert jobs == ["j0"]


def test_who_is_full_does_not_wait(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue, 1)
    one = consumer(name="c", jobs=2)
    one.pull()
    client.hset(base + "consumer:c", "jobs", 1)
    assert kinds(doctor.check_queue(queue.name)) == {"over-window": "c"}
    heals(doctor, queue)
    assert client.hget(base + "consumer:c", "state") == b"not_interested"


def test_a_lowered_window_is_only_a_note(doctor: Doctor, queue: Queue, consumer: Make) -> None:
    fill(queue)
    one = consumer(name="c", jobs=4)
    one.pull()
    one.interest(2)
    (finding,) = doctor.check_queue(queue.name)
    assert (finding.kind, finding.severity) == ("window-lowered", "note")


def test_bytes_are_counted_again(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue, 2)
    one = consumer(name="c", jobs=9, bytes=1000)
    one.pull()
    right = client.hget(base + "consumer:c", "held_bytes")
    client.hset(base + "consumer:c", "held_bytes", 7)
    assert kinds(doctor.check_queue(queue.name)) == {"bytes": "c"}
    heals(doctor, queue)
    assert client.hget(base + "consumer:c", "held_bytes") == right


def test_a_lease_that_ended_unseen_is_reclaimed(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    fill(queue, 2)
    consumer(name="c", jobs=9).pull()
    client.zadd(base + "consumers", {"c": 1000})
    assert kinds(doctor.check_queue(queue.name)) == {"lease-ended": "c"}
    assert heals(doctor, queue) == ["lease-ended"]
    assert queue.counts().ready == 2


def test_a_lease_that_ended_without_a_job_is_a_note(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    consumer(name="c", jobs=9)
    client.zadd(base + "consumers", {"c": 1000})
    (finding,) = doctor.check_queue(queue.name)
    assert (finding.kind, finding.severity) == ("lease-ended", "note")


# -- liveness --------------------------------------------------------------------------------------


def test_work_of_which_no_consumer_was_notified(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    one = consumer(name="c", jobs=9)
    one.pull()
    fill(queue, 1)
    one.wait(PATIENCE)
    one.pull()
    one.settle(ack=["j0"])
    assert one.pull() == []
    # a job put in behind the scripts' back
    position = int(client.hincrby(base + "meta", "seq", 1))
    client.hset(base + "jobs", "x", f'{position},1;["t"]')
    client.rpush(base + "ready:4", "x")
    assert kinds(doctor.check_queue(queue.name)) == {"stuck": ""}
    assert heals(doctor, queue) == ["stuck"]
    assert one.wait(PATIENCE)
    assert [job.id for job in one.pull()] == ["x"]


def test_a_schedule_that_nobody_watches(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    one = consumer(name="c", jobs=9)
    queue.enqueue_puts([commands.Put("later", b'["t"]', delay_ms=60_000)])
    one.wait(PATIENCE)
    one.pull()
    assert one.timer_ms > 0
    client.hdel(base + "meta", "timer")
    assert kinds(doctor.check_queue(queue.name)) == {"unwatched": ""}
    assert heals(doctor, queue) == ["unwatched"]
    one.wait(PATIENCE)
    one.pull()
    assert one.timer_ms > 0


def test_a_notified_consumer_that_does_not_pull_is_passed_over(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    deaf, other = consumer(name="a", jobs=1), consumer(name="b", jobs=1)
    deaf.pull()
    other.pull()
    queue.enqueue_puts([commands.Put(f"k{i}", b'["t"]') for i in range(2)])
    other.pull()
    client.zadd(base + "notified", {"a": 1000})
    assert kinds(doctor.check_queue(queue.name)) == {"deaf": "a"}
    doctor.heal(queue.name)
    assert client.zscore(base + "notified", "a") != 1000
