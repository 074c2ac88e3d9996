"""A queue is deleted whole, in steps, and a later one of its name knows nothing of it."""

from collections.abc import Callable

import pytest

from rqueue.errors import ConfigError, ConsumerGone, JobPurged, QueueInUse, RedisBusy, UnknownQueue
from rqueue.inspector import Inspector
from rqueue.protocol import commands
from rqueue.protocol.result_wait import await_result
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, every_place, ids
from tests.support.two_queues import second


def keys_of(q: QueueFixture) -> list[str]:
    """All but messages to those that were consumers, which have a lifetime."""
    base = q.queue.keys.base
    found = [key.decode()[len(base) :] for key in q.queue.redis.scan_iter(base + "*", count=10_000)]
    return sorted(key for key in found if not key.startswith(("wake:", "result:")))


def test_an_empty_queue_is_deleted(q: QueueFixture) -> None:
    """Q-61: nothing is left but the last term."""
    q.queue.configure(priorities=3, keep=60)
    q.put("A")
    consumer = q.join()
    consumer.ack(consumer.pull()[0])
    consumer.close()
    assert q.queue.delete() == 0
    assert keys_of(q) == ["meta"]
    assert set(q.look().meta) <= {"v", "term", "deleted", "clock"}
    with Inspector(redis=q.queue.redis) as inspector:
        with pytest.raises(UnknownQueue):
            inspector.queue(q.queue.name)
        assert q.queue.name not in [info.name for info in inspector.queues()]
    with pytest.raises(UnknownQueue):
        q.queue.at(q.queue.name + "/never").delete()


def test_a_queue_in_use_is_not_deleted(q: QueueFixture) -> None:
    q.put("A")
    before = q.look()
    with pytest.raises(QueueInUse, match="it has 1 job"):
        q.queue.delete()
    assert (q.look().meta, q.look().jobs) == (before.meta, before.jobs)
    consumer = q.join()
    consumer.ack(consumer.pull()[0])
    with pytest.raises(QueueInUse, match="it has 1 consumer"):
        q.queue.delete(jobs=True)
    assert q.state(consumer) == "interested"


def test_its_jobs_end_with_it_wherever_they_are(q: QueueFixture) -> None:
    q.put("dead", "held", "cancelled", "ready", "high", priority=9)
    q.put("later", delay_ms=60_000)
    q.put("g1", "g2", group="g")
    consumer = q.join(jobs=2)
    consumer.pull()
    consumer.reject("dead", "no")
    q.queue.cancel("cancelled")
    handle = q.queue.job("ready")
    q.join(mode="browse")
    assert q.queue.delete(jobs=True, consumers=True) == 7
    assert keys_of(q) == ["meta"]
    assert handle.state().value == "unknown"
    with pytest.raises(ConsumerGone):
        consumer.settle(ack=["held"])


@every_place
def test_they_go_to_another_queue_in_order(q: QueueFixture) -> None:
    target = QueueFixture(q.queue.at(q.queue.name + "/new"))
    with pytest.raises(ConfigError, match="no other queue"):
        q.queue.delete(jobs_to=target.queue.name)
    target.queue.configure(max_deliveries=5)
    names = [f"j{n:03}" for n in range(600)]
    q.put(*names)
    consumer = q.own(jobs=5)
    consumer.pull()
    assert q.queue.delete(jobs_to=target.queue.name, consumers=True) == 600
    assert keys_of(q) == ["meta"]
    other = target.own(jobs=1000)
    got = [*ids(other.pull()), *ids(other.pull())]
    assert got == names
    target.close()


def test_while_it_is_deleted_it_takes_nothing_and_anybody_goes_on(q: QueueFixture) -> None:
    """The one who began has died."""
    q.put("A", "B")
    consumer = q.join(jobs=1)
    consumer.pull()
    call = commands.delete(q.queue.keys, jobs=True, consumers=True)
    assert execute(q.queue.redis, call).word == "deleting"
    before = q.look()
    for step in (lambda: q.put("C"), lambda: q.put("D", ttl=5), q.join):
        with pytest.raises(RedisBusy, match="is being deleted"):
            step()
    assert (q.look().meta, q.look().jobs) == (before.meta, before.jobs)
    assert execute(q.queue.redis, commands.delete_end(q.queue.keys)) == "left"
    assert q.queue.delete() == 2
    assert keys_of(q) == ["meta"]
    q.put("A")
    assert ids(q.join().pull()) == ["A"]


@every_place
def test_a_transaction_enqueues_nothing_either(q: QueueFixture) -> None:
    """And settles nothing then."""
    q.put("A")
    consumer = q.own(jobs=1)
    (job,) = consumer.pull()
    execute(q.queue.redis, commands.delete(q.queue.keys, jobs=True, consumers=True))
    with (
        pytest.raises(RedisBusy, match="is being deleted"),
        q.queue.transaction(consumer) as transaction,
    ):
        transaction.enqueue("t")
        transaction.ack(job)
    assert set(q.look().jobs) == {"A"}
    assert q.queue.delete() == 1


def test_consumers_hear_of_it_and_may_register_again(q: QueueFixture) -> None:
    q.put("A")
    consumer = q.own(jobs=5)
    consumer.ack(consumer.pull()[0])
    assert consumer.pull() == []
    q.queue.delete(consumers=True)
    assert consumer.wait(PATIENCE) and consumer.state == "notified"
    with pytest.raises(ConsumerGone):
        consumer.pull()
    q.put("A")  # an id of the former queue
    assert ids(q.join().pull()) == ["A"]


def test_a_later_queue_fences_the_consumers_of_the_former(q: QueueFixture) -> None:
    """Q-61, H-08: terms go on, so a name that comes again is no earlier one."""
    zombie = q.join(name="worker-1")
    term = int(zombie._state.term)
    q.put("A")
    zombie.pull()
    q.queue.delete(jobs=True, consumers=True)
    q.put("A")
    successor = q.join(name="worker-1")
    assert int(successor._state.term) > term
    assert ids(successor.pull()) == ["A"]
    call = commands.settle(q.queue.keys, "worker-1", str(term), None, ack=["A"])
    with pytest.raises(ConsumerGone):
        execute(q.queue.redis, call)
    successor.settle(ack=["A"])
    assert successor.refused == []


@every_place
def test_the_target_of_another_queue_is_not_deleted(q: QueueFixture) -> None:
    """Q-66; one that was noted and is not is."""
    dead = q.queue.at(q.queue.name + "/dead")
    dead.configure(max_deliveries=5)
    q.queue.configure(dead_to=dead.name)
    with pytest.raises(QueueInUse, match="dead letters or expired jobs of queue"):
        dead.delete(jobs=True)
    execute(q.queue.redis, commands.link(dead.keys, "ghost", ["dead"]))
    assert q.queue.delete() == 0
    assert dead.delete() == 0
    with pytest.raises(ConfigError, match="there is no queue"):
        q.queue.configure(dead_to=dead.name)


@every_place
def test_results_of_its_jobs_are_over(q: QueueFixture) -> None:
    handle = q.put("A")
    execute(q.queue.redis, await_result(q.queue.keys, "A", wait=True))
    q.queue.delete(jobs=True)
    with pytest.raises(JobPurged):
        handle.result(1)


@every_place
def test_a_target_that_refuses_stops_the_deletion_and_it_goes_on(q: QueueFixture) -> None:
    target = q.queue.at(q.queue.name + "/new")
    target.configure(max_jobs=1)
    q.put("A", "B")
    with pytest.raises(QueueInUse, match="1 job on their way"):
        q.queue.delete(jobs_to=target.name)
    target.configure(max_jobs=2)
    move_time(q.queue, 5_001)
    q.queue.delete()
    assert keys_of(q) == ["meta"] and target.counts().ready == 2


@pytest.mark.parametrize("makes", ["configure", "job", "consumer"])
def test_who_comes_after_a_deletion_makes_the_queue_anew(q: QueueFixture, makes: str) -> None:
    """Q-61: it may be a target then, of dead letters, of jobs that are moved, of mandatory ones."""
    with second(q) as other:
        other.put("gone")
        other.queue.delete(jobs=True)
        for use in _uses(q, other):
            with pytest.raises((ConfigError, UnknownQueue)):
                use()
        if makes == "configure":
            other.queue.configure(keep=60)
        elif makes == "job":
            other.put("A")
        else:
            other.join(0)
        for use in _uses(q, other):
            use()
        q.queue.configure(dead_to="")


def _uses(q: QueueFixture, other: QueueFixture) -> list[Callable[[], object]]:
    return [
        lambda: q.queue.configure(dead_to=other.queue.name),
        lambda: q.queue.move_all(other.queue.name),
        lambda: other.put("mandatory", mandatory=True),
    ]
