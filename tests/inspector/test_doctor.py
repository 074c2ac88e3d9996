"""Each kind of damage, done by hand, is found, explained, repaired, and nothing else is."""

from collections.abc import Callable

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.errors import UnknownQueue
from rqueue.inspector import INVARIANTS, Doctor, Finding, Inspector
from rqueue.protocol import commands
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute

pytestmark = pytest.mark.each_server

Make = Callable[..., Consumer]


@pytest.fixture
def doctor(client: redis.Redis) -> Doctor:
    return Doctor(client, "rqueue", wait=lambda _seconds: None)


@pytest.fixture
def base(queue: Queue) -> str:
    return queue.keys.base


def fill(queue: Queue, count: int = 6) -> list[str]:
    """Jobs j0, j1, ...: the even ones of level 4, the odd ones of level 9."""
    ids = []
    for number in range(count):
        put = commands.Put(f"j{number}", b'["t"]', 9 if number % 2 else 4)
        queue.enqueue_puts([put])
        ids.append(put.id)
    return ids


def kinds(found: list[Finding]) -> dict[str, str]:
    assert all(finding.invariant in INVARIANTS for finding in found)
    return {finding.kind: finding.subject for finding in found}


def heals(doctor: Doctor, queue: Queue) -> list[str]:
    """Repair; what was repaired. Nothing is left."""
    repaired: list[Finding] = []
    left = doctor.heal(queue.name, repaired.append)
    assert left == [], left
    return [finding.kind for finding in repaired]


def drain(queue: Queue, make: Make) -> list[str]:
    one = make(jobs=100)
    got = [job.id for job in one.pull()]
    one.settle(ack=got)
    return got


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


def test_a_job_held_twice_stays_with_one_and_the_other_is_told(
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
    jobs = [wake.job.id for wake in one.wait(5) if wake.job] or [job.id for job in one.pull()]
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


# -- liveness --------------------------------------------------------------------------------------


def test_work_that_nobody_was_told_of(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    one = consumer(name="c", jobs=9)
    one.pull()
    fill(queue, 1)
    one.wait(5)
    one.pull()
    one.settle(ack=["j0"])
    assert one.pull() == []
    # a job put in behind the scripts' back
    position = int(client.hincrby(base + "meta", "seq", 1))
    client.hset(base + "jobs", "x", f'{position},1;["t"]')
    client.rpush(base + "ready:4", "x")
    assert kinds(doctor.check_queue(queue.name)) == {"stuck": ""}
    assert heals(doctor, queue) == ["stuck"]
    assert one.wait(5)
    assert [job.id for job in one.pull()] == ["x"]


def test_a_schedule_that_nobody_watches(
    doctor: Doctor, queue: Queue, client: redis.Redis, base: str, consumer: Make
) -> None:
    one = consumer(name="c", jobs=9)
    queue.enqueue_puts([commands.Put("later", b'["t"]', delay_ms=60_000)])
    one.wait(5)
    one.pull()
    assert one.timer_ms > 0
    client.hdel(base + "meta", "timer")
    assert kinds(doctor.check_queue(queue.name)) == {"unwatched": ""}
    assert heals(doctor, queue) == ["unwatched"]
    one.wait(5)
    one.pull()
    assert one.timer_ms > 0


def test_who_was_told_and_does_not_pull_is_passed_over(
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


def test_who_waits_for_room_for_a_job_that_is_gone_is_told(
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
    assert one.wait(5)


def test_records_that_nobody_can_read_are_told(
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
