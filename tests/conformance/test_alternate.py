"""Dead letters and expired jobs of one queue go to another one, once."""

from collections.abc import Iterator

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError, JobExpired, JobFailed
from rqueue.inspector import Inspector
from rqueue.model.envelope import Envelope
from rqueue.model.job import Delivery
from rqueue.protocol import commands
from rqueue.protocol.commands.outgoing import outgoing_done, outgoing_take
from rqueue.protocol.forwarding import forwarding
from rqueue.testing import housekeeping, move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, every_place, ids

ERROR = {"type": "ValueError", "message": "no"}


@pytest.fixture
def dead(q: QueueFixture) -> Iterator[QueueFixture]:
    """Where dead letters go."""
    with Queue(q.queue.name + "/dead", redis=q.queue.redis) as queue:
        queue.configure(max_deliveries=10)
        found = QueueFixture(queue)
        yield found
        found.close()


def origin(job: Delivery) -> dict[str, object]:
    found: dict[str, object] = Envelope.decode(job.body).opts["origin"]
    return found


def rejected(q: QueueFixture, *names: str) -> None:
    """These jobs are rejected, in their order, and nobody sends them on."""
    q.put(*names)
    consumer = q.own(jobs=len(names))
    call = commands.pull(q.queue.keys, consumer.name, consumer._state.term, commands.Window(100))
    held = execute(q.queue.redis, call)
    assert len(held.jobs) == 2 * len(names)
    call = commands.settle(
        q.queue.keys, consumer.name, consumer._state.term, None, reject=[(i, b"{}") for i in names]
    )
    execute(q.queue.redis, call)
    consumer.close()


@every_place
def test_QBA_23_the_alternate_queue_must_exist(q: QueueFixture) -> None:
    """Q-66."""
    with pytest.raises(ConfigError, match="dead_to: there is no queue 'nowhere'"):
        q.queue.configure(dead_to="nowhere")
    assert not q.queue.redis.exists(q.queue.keys.meta)
    assert not q.queue.redis.exists(q.queue.at("nowhere").keys.meta)


@every_place
def test_it_is_not_the_queue_itself_and_leads_not_back(q: QueueFixture, dead: QueueFixture) -> None:
    """Q-66: loops are refused when they are declared."""
    q.put("A")
    with pytest.raises(ConfigError, match="itself"):
        q.queue.configure(dead_to=q.queue.name)
    q.queue.configure(dead_to=dead.queue.name)
    with pytest.raises(ConfigError, match="come back"):
        dead.queue.configure(expired_to=q.queue.name)
    q.queue.configure(dead_to="")
    dead.queue.configure(expired_to=q.queue.name)


def test_ARD_09_a_dead_letter_goes_to_the_alternate_after_one_attempt(
    q: QueueFixture, dead: QueueFixture
) -> None:
    """b) Q-66."""
    q.queue.configure(max_deliveries=1, dead_to=dead.queue.name)
    handle = q.put("A", "B")
    consumer = q.join(jobs=2)
    first, second = consumer.pull()
    consumer.retry(first, delay=0, error=ERROR)
    consumer.ack(second)
    look = q.look()
    assert look.scores("dead") == {} and "A" not in look.jobs
    assert q.queue.counts().outgoing == 0 and q.queue.counts().meta["moved"] == "1"
    (job,) = dead.join().pull()
    assert job.id == "A" and Envelope.decode(job.body).task == "t"
    assert origin(job)["queue"] == q.queue.name and origin(job)["via"] == [q.queue.name]
    assert (origin(job)["outcome"], origin(job)["attempts"]) == ("dead", 1)
    assert (job.header.attempts, job.header.deliveries) == (0, 0)
    assert handle.result(0) is None
    with pytest.raises(JobFailed):
        q.queue.job("A").result(0)


def test_ARD_10_after_two_attempts_it_was_delivered_twice(
    q: QueueFixture, dead: QueueFixture
) -> None:
    """b) Q-66."""
    q.queue.configure(max_deliveries=2, dead_to=dead.queue.name)
    q.put("A")
    consumer = q.join()
    for _ in range(2):
        (job,) = consumer.pull()
        consumer.retry(job, delay=0, error=ERROR)
    assert consumer.pull() == []
    assert ids(dead.join().pull()) == ["A"]


def test_ARD_13_dead_letters_keep_their_order_their_ids_and_their_levels(
    q: QueueFixture, dead: QueueFixture
) -> None:
    """b) Q-66."""
    names = [f"Message:{n}" for n in range(5)]
    q.queue.configure(max_deliveries=16, dead_to=dead.queue.name)
    q.put(*names)
    consumer = q.join()
    for _ in range(16):
        jobs = consumer.pull()
        assert ids(jobs) == names
        consumer.settle(
            retry=[commands.Retried(job.id, 0, "old", True, b'{"type":"E"}') for job in jobs]
        )
    q.put("high", priority=9, max_deliveries=3)
    (job,) = consumer.pull()
    consumer.reject(job, "no")
    found = dead.join().pull()
    assert ids(found) == ["high", *names]
    assert (found[0].header.level, found[0].header.max_deliveries) == (9, 3)
    assert {origin(job)["queue"] for job in found} == {q.queue.name}


def test_ARD_15_expired_jobs_go_to_their_queue(q: QueueFixture, dead: QueueFixture) -> None:
    """b) Q-66."""
    q.queue.configure(expired_to=dead.queue.name)
    handle = q.put("A", ttl=10)
    q.put("B", ttl=10)
    q.put("C")
    move_time(q.queue, 10_001)
    assert ids(q.join().pull()) == ["C"]
    housekeeping(q.queue)
    with pytest.raises(JobExpired):
        handle.result(0)
    jobs = dead.join().pull()
    assert ids(jobs) == ["A", "B"]
    assert {origin(job)["outcome"] for job in jobs} == {"expired"}
    assert all(job.header.expires_ms == 0 for job in jobs)


def test_ARD_17_what_counts_is_what_the_queue_says_when_they_expire(
    q: QueueFixture, dead: QueueFixture
) -> None:
    """b) Q-66."""
    q.put("A", "B", ttl=10)
    with q.queue.at(q.queue.name + "/other") as other:
        other.pause()
        q.queue.configure(expired_to=other.name)
        q.queue.configure(expired_to=dead.queue.name, expired="dead")
        move_time(q.queue, 10_001)
        housekeeping(q.queue)
        assert other.counts().ready == 0
    jobs = dead.join().pull()
    assert ids(jobs) == ["A", "B"] and q.look().scores("dead") == {}
    assert all(origin(job)["at"] >= origin(job)["enqueued"] + 10_000 for job in jobs)  # type: ignore[operator]


def test_a_job_that_crashed_once_too_often_goes_there(q: QueueFixture, dead: QueueFixture) -> None:
    q.queue.configure(max_deliveries=1, dead_to=dead.queue.name)
    q.put("A")
    consumer = q.join()
    consumer.pull()
    call = commands.reclaim(q.queue.keys, consumer.name, b'{"kind":"crash"}', [commands.Ran("A")])
    assert execute(q.queue.redis, call).died[0].id == "A"
    assert q.queue.counts().outgoing == 1
    housekeeping(q.queue)
    (job,) = dead.join().pull()
    assert origin(job)["cause"]["kind"] == "crash"  # type: ignore[index]


def test_a_job_that_comes_round_stays_where_it_is(q: QueueFixture, dead: QueueFixture) -> None:
    """Also where two queues were configured at the same time, each as the other's target."""
    q.put("A")
    q.queue.configure(dead_to=dead.queue.name)
    for queue, target in ((q, dead), (dead, q)):
        execute(
            queue.queue.redis, commands.configure(queue.queue.keys, {"dead_to": target.queue.name})
        )
    consumer = q.join()
    consumer.reject(consumer.pull()[0], "no")
    other = dead.join()
    (job,) = other.pull()
    other.reject(job, "no")
    assert set(dead.look().scores("dead")) == {"A"}
    assert dead.queue.counts().outgoing == 0


def test_dead_letters_that_were_there_stay(q: QueueFixture, dead: QueueFixture) -> None:
    q.put("A")
    consumer = q.join()
    consumer.reject(consumer.pull()[0], "no")
    q.queue.configure(dead_to=dead.queue.name)
    housekeeping(q.queue)
    assert set(q.look().scores("dead")) == {"A"}
    assert q.requeue("A") == 1
    consumer.reject(consumer.pull()[0], "no")
    assert ids(dead.join().pull()) == ["A"]


@pytest.mark.parametrize("died_before", [0, 1, 2, 3])
def test_a_sender_that_dies_between_two_calls_loses_and_doubles_nothing(
    q: QueueFixture, dead: QueueFixture, died_before: int
) -> None:
    """Before it took them, before it enqueued, before it said so, before it looked again."""
    q.queue.configure(dead_to=dead.queue.name)
    rejected(q, "A", "B", "C")
    assert q.queue.counts().outgoing == 3
    steps = forwarding(q.queue.keys)
    call = next(steps)
    for _ in range(died_before):
        call = steps.send(execute(q.queue.redis, call))
    before = q.queue.forward()
    assert before == (3 if died_before == 0 else 0)
    move_time(q.queue, 5_001)
    housekeeping(q.queue)
    assert q.queue.counts().outgoing == 0
    # the one that was thought dead goes on where it was
    for _ in range(3):
        try:
            call = steps.send(execute(q.queue.redis, call))
        except StopIteration:
            break
    consumer = dead.join()
    assert ids(consumer.pull()) == ["A", "B", "C"]
    consumer.settle(ack=["A", "B", "C"])
    assert consumer.pull() == [] and q.queue.counts().meta["moved"] == "3"


def test_what_one_has_taken_nobody_else_gets(q: QueueFixture, dead: QueueFixture) -> None:
    q.queue.configure(dead_to=dead.queue.name)
    rejected(q, "A", "B")
    first = execute(q.queue.redis, outgoing_take(q.queue.keys, 1))
    second = execute(q.queue.redis, outgoing_take(q.queue.keys))
    third = execute(q.queue.redis, outgoing_take(q.queue.keys))
    assert [[job.id for job in taken.jobs] for taken in (first, second, third)] == [
        ["A"],
        ["B"],
        [],
    ]
    assert execute(q.queue.redis, outgoing_done(q.queue.keys, [first.jobs[0].member])) == 1
    assert execute(q.queue.redis, outgoing_done(q.queue.keys, [first.jobs[0].member])) == 0
    move_time(q.queue, 5_001)
    assert q.queue.forward() == 1
    assert ids(dead.join().pull()) == ["B"]  # A was said to be there: nobody else knew better


def test_a_target_that_refuses_costs_the_others_nothing(
    q: QueueFixture, dead: QueueFixture
) -> None:
    q.queue.configure(dead_to=dead.queue.name)
    rejected(q, "A")
    with q.queue.at(q.queue.name + "/broken") as broken:
        broken.pause()
        q.queue.configure(dead_to=broken.name)
        rejected(q, "B")
        q.queue.configure(dead_to=dead.queue.name)
        rejected(q, "C")
        broken.redis.set(broken.keys.jobs, "x")
        assert q.queue.forward() == 2
        assert q.queue.counts().outgoing == 1
        broken.redis.delete(broken.keys.jobs)
        move_time(q.queue, 5_001)
        assert q.queue.forward() == 1 and broken.counts().ready == 1
    assert ids(dead.join().pull()) == ["A", "C"]


@every_place
def test_counts_and_kind(q: QueueFixture, dead: QueueFixture) -> None:
    q.queue.configure(dead_to=dead.queue.name)
    rejected(q, "A")
    with Inspector(redis=q.queue.redis) as inspector:
        info = inspector.queue(q.queue.name)
        assert (info.outgoing, info.dead, info.targets) == (1, 0, {"dead_to": dead.queue.name})
    assert q.look().meta["v"] == "1 levels outbox alternate"
    with pytest.raises(ConfigError, match="kind"):
        q.queue.configure(kind="plain")
